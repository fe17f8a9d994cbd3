/**
 * Stage: rows of the same people, linked by ids or match keys in each row group.
 *
 * The parties of a row group stand in a ring. Each masks the values of its keys and seals
 * them to the next one, which masks them again. The last one sends tokens of what all
 * have masked. The analyst links rows by them, without reading any.
 */

import { comparedValues } from "../alignment/arrival.ts";
import type { Alignment } from "../alignment/params.ts";
import type {
  LinkageKeysMasked,
  LinkageKeysPassed,
  LinkageKeyTokens,
  LinkageMaskedKeys,
  LinkageSelectLinked,
} from "../generated/shared.ts";
import type { Agreement } from "../roster/roster.ts";
import { audiences, groupOf } from "../roster/terms.ts";
import { JointMask } from "../secrecy/joint-mask.ts";
import { POINT_BYTES } from "../secrecy/ristretto.ts";
import type {
  PartyContext,
  PeerMessage,
  Reply,
  Stage,
  Table,
} from "../session/contract.ts";
import { numbers, type Bytes } from "../wire/arrays.ts";
import { concat, digest, lengthPrefixed } from "../wire/bytes.ts";
import { refuse } from "../wire/problems.ts";
import { receiveSelected, selectCommon, type CommonRows } from "./common-rows.ts";

const HELD = "masked-keys";
const ORDER = "list-order";
const MASKED: LinkageKeysMasked = { kind: "keys-masked" };
const PASSED: LinkageKeysPassed = { kind: "keys-passed" };

/** The stage of one slot: a slot alone in its row group selects all its rows. */
export function linkageStage(
  alignment: Alignment,
  { terms }: Agreement,
  slot: string,
): Stage {
  const isAlone = groupOf(terms, slot, "row").length === 1;
  const largest = Math.max(...audiences(terms, "row").map((each) => each.length));
  const once = isAlone ? 0 : 1;
  const passes = isAlone ? 0 : Math.max(0, largest - 2);
  return {
    name: "linkage",
    exchanges: [
      { task: "mask-keys", answer: "keys-masked", least: once, most: once },
      { task: "pass-keys", answer: "keys-passed", least: passes, most: passes },
      { task: "show-tokens", answer: "key-tokens", least: once, most: once },
      { task: "select-linked", answer: "digests", own: ["rows"] },
    ],
    envelopes: ["masked-keys", "digests"],
    role: {
      reply(context, task, table): Reply {
        if (task.kind === "mask-keys") return maskOwn(context, alignment, table);
        if (task.kind === "pass-keys") return passOn(context);
        if (task.kind === "show-tokens") return showTokens(context);
        const { rows, n_rows } = task as LinkageSelectLinked;
        const found = findRows(context, numbers(rows), alignment, table);
        return selectCommon(context, alignment, table, found, n_rows);
      },
      receive: (context, envelopes) =>
        receiveSelected(context, envelopes)
          ? {}
          : { [HELD]: listOf(context, alignment, envelopes) },
    },
  };
}

/** Own values, in an order that nobody else knows. */
function maskOwn(context: PartyContext, alignment: Alignment, table: Table): Reply {
  const found = comparedValues(table.ids, alignment);
  const size = table.rows.length;
  const order = context.lastingStream("list-order").permutation(size);
  const [mask, filler] = [maskOf(context), context.lastingStream("no-value")];
  const points = found.flatMap((own, key) => {
    const purpose = boundTo(context, `key ${key}`);
    return mask.begin(
      order.map((row) => own[row]),
      purpose,
      filler,
    );
  });
  const shape = [found.length, size, POINT_BYTES];
  const sent = toNext(context, { shape, data: concat(points) }, 1);
  return { ...sent, contribution: MASKED, remember: { [ORDER]: order } };
}

/** Masks and passes on; in a smaller row group the list has gone round already. */
function passOn(context: PartyContext): Reply {
  const held = context.recall<LinkageMaskedKeys>(HELD);
  if (held.n_masks === context.group("row").length - 1) return { contribution: PASSED };
  const points = pointsArray(held.points, maskFurther(context, held));
  return {
    ...toNext(context, points, held.n_masks + 1),
    contribution: PASSED,
    remember: { [HELD]: withoutPoints(held) },
  };
}

/** SHA-256 of each point that all have masked: not the point, which could go further. */
function showTokens(context: PartyContext): Reply {
  const held = context.recall<LinkageMaskedKeys>(HELD);
  if (held.n_masks !== context.group("row").length - 1) {
    refuse("protocol-failed", "The analyst asks for tokens out of turn.");
  }
  const label = boundTo(context, "token");
  const made = maskFurther(context, held).map((point) =>
    digest(concat([label, point])),
  );
  const contribution: LinkageKeyTokens = {
    kind: "key-tokens",
    tokens: pointsArray(held.points, made),
  };
  return { contribution, remember: { [HELD]: withoutPoints(held) } };
}

/** Own rows that take part, in the order of all of the row group; names are ids. */
function findRows(
  context: PartyContext,
  places: readonly number[],
  alignment: Alignment,
  table: Table,
): CommonRows {
  if (context.group("row").length === 1) {
    return { rows: [...table.rows.keys()], names: [] };
  }
  const order = context.recall<readonly number[]>(ORDER);
  const isOnce = new Set(places).size === places.length;
  if (!isOnce || places.some((place) => place >= order.length)) {
    refuse("protocol-failed", "The analyst selects missing or repeated rows.");
  }
  const rows = places.map((place) => order[place]!);
  if (alignment.matchKeys.length) return { rows, names: [] };
  const ids = comparedValues(table.ids, alignment)[0]!;
  const names = rows.flatMap((row) => ids[row] ?? []);
  if (names.length < rows.length) {
    refuse("protocol-failed", "The analyst selects rows whose ids were not compared.");
  }
  return { rows, names };
}

/** The list of the party before: of this round's masks, and no longer than its rows. */
function listOf(
  context: PartyContext,
  { matchKeys }: Alignment,
  envelopes: readonly PeerMessage[],
): LinkageMaskedKeys {
  const ring = context.group("row");
  const before = neighbour(context, -1);
  const [sent, ...more] = envelopes;
  if (sent?.peer !== before || sent.content.kind !== "masked-keys" || more.length) {
    return refuse(
      "envelope-refused",
      "The previous party may send only masked values.",
    );
  }
  const list = sent.content as LinkageMaskedKeys;
  const held = context.memory.get(HELD) as LinkageMaskedKeys | undefined;
  if (list.n_masks !== (held?.n_masks ?? 0) + 1 || list.n_masks >= ring.length) {
    refuse("envelope-refused", "Masked values arrived out of turn.");
  }
  const origin = context.member(neighbour(context, -list.n_masks));
  const [keys, size] = list.points.shape;
  if (keys !== Math.max(1, matchKeys.length) || size !== origin.n_rows) {
    refuse("invalid-array", "A list of masked values has another size than its rows.");
  }
  return list;
}

function toNext(context: PartyContext, points: Bytes, masks: number) {
  const content: LinkageMaskedKeys = { kind: "masked-keys", n_masks: masks, points };
  return {
    envelopes: [{ peer: neighbour(context, 1), content }],
    awaits: [neighbour(context, -1)],
  };
}

function neighbour(context: PartyContext, steps: number): string {
  const ring = context.group("row");
  return ring[(ring.indexOf(context.slot) + steps + ring.length) % ring.length]!;
}

function maskOf(context: PartyContext): JointMask {
  return new JointMask(context.lastingStream("mask"));
}

function maskFurther(
  context: PartyContext,
  { points: { data } }: LinkageMaskedKeys,
): readonly Uint8Array[] {
  if (!data.length) {
    refuse("protocol-failed", "The analyst asks to mask a list a second time.");
  }
  const mask = maskOf(context);
  return Array.from({ length: data.length / POINT_BYTES }, (_, place) => {
    const point = data.subarray(place * POINT_BYTES, (place + 1) * POINT_BYTES);
    try {
      return mask.goOn(point);
    } catch {
      return refuse("guard-refused", "A masked value is not a point of the group.");
    }
  });
}

function pointsArray({ shape }: Bytes, points: readonly Uint8Array[]): Bytes {
  return { shape, data: concat(points) };
}

/** The list without its points, because memory is written in every later round. */
function withoutPoints(held: LinkageMaskedKeys): LinkageMaskedKeys {
  const shape = [held.points.shape[0]!, 0, POINT_BYTES];
  return { ...held, points: { shape, data: new Uint8Array() } };
}

/** The label that binds values and tokens to this agreement and ring. */
function boundTo({ agreement, place }: PartyContext, purpose: string): Uint8Array {
  const { terms, digest: agreed } = agreement;
  return lengthPrefixed(
    ...(["coterie/linkage/1", purpose, terms.session, agreed, place.row] as const),
  );
}
