/**
 * Stage: rows whose ids all parties of a row group hold, by private set intersection.
 *
 * Ids are evaluated under a key of the first slot, which sees the others' ids blinded
 * alone. The analyst compares tokens, and says which are common.
 */

import { identify, type Identified } from "../alignment/arrival.ts";
import type { Alignment } from "../alignment/params.ts";
import type {
  IntersectionAnswers,
  IntersectionBlindedIds,
  IntersectionCounted,
  IntersectionEvaluated,
  IntersectionSelect,
  IntersectionShown,
} from "../generated/shared.ts";
import { audiences } from "../roster/terms.ts";
import {
  drawScalar,
  inverseOf,
  maskId,
  maskPoint,
  POINT_BYTES,
} from "../secrecy/ristretto.ts";
import type {
  PartyContext,
  PeerMessage,
  Reply,
  Stage,
  Table,
} from "../session/contract.ts";
import type { Agreement } from "../roster/roster.ts";
import type { Bytes } from "../wire/arrays.ts";
import { concat, digest, lengthPrefixed, utf8 } from "../wire/bytes.ts";
import { refuse } from "../wire/problems.ts";
import { receiveSelected, selectCommon } from "./common-rows.ts";

const TOKEN_ORDER = "token-order";
const TO_EVALUATE = "to-evaluate";
const ANSWERS = "answers";
const EVALUATED: IntersectionEvaluated = { kind: "evaluated" };

type Points = readonly Uint8Array[];

/** The stage of one slot: the leader evaluates, the others unblind. */
export function intersectionStage(
  alignment: Alignment,
  { terms }: Agreement,
  slot: string,
): Stage {
  const group = audiences(terms, "row").find((each) => each.includes(slot))!;
  const [leads, isAlone] = [group[0] === slot, group.length === 1];
  return {
    name: "intersection",
    exchanges: [
      { task: "blind", answer: "counted" },
      { task: "evaluate", answer: "evaluated", least: leads && !isAlone ? 1 : 0 },
      { task: "unblind", answer: "shown", least: leads ? 0 : 1 },
      { task: "select", answer: "digests", own: ["common"] },
    ],
    envelopes: ["blinded-ids", "answers", "digests"],
    role: {
      reply(context, task, table): Reply {
        if (task.kind === "evaluate") return evaluate(context);
        const own = identified(context, alignment, table);
        if (task.kind === "blind") return blind(context, own);
        if (task.kind === "unblind") return unblind(context, own);
        const { common, n_rows } = task as IntersectionSelect;
        const places = commonPlaces(context, common, own);
        const rows = places.map((place) => own.rows[place]!);
        const names = places.map((place) => own.ids[place]!);
        return selectCommon(context, alignment, table, { rows, names }, n_rows);
      },
      receive: (context, envelopes) => receive(context, envelopes),
    },
  };
}

/** The different ids of rows; a party that shares no rows needs none. */
function identified(
  context: PartyContext,
  alignment: Alignment,
  { ids, rows }: Table,
): Identified {
  if (context.group("row").length === 1) {
    const numbers = [...rows.keys()];
    return { ids: numbers.map(String), rows: numbers };
  }
  return identify(ids!, alignment);
}

function blind(context: PartyContext, own: Identified): Reply {
  const [leader, ...others] = context.group("row");
  if (leader === context.slot && others.length) {
    const key = drawScalar(context.lastingStream("key"));
    const values = own.ids.map((id) => maskId(id, contextOf(context), key));
    const { tokens, order } = tokensOf(context, own, values);
    return { contribution: counted(own, tokens), remember: { [TOKEN_ORDER]: order } };
  }
  if (!others.length) return { contribution: counted(own, []) };
  const stream = context.lastingStream("blinding");
  const blinded = own.ids.map((id) =>
    maskId(id, contextOf(context), drawScalar(stream)),
  );
  const content: IntersectionBlindedIds = {
    kind: "blinded-ids",
    elements: pointsArray(blinded),
  };
  return { contribution: counted(own, []), envelopes: [{ peer: leader!, content }] };
}

/** Answers each member, once in a session: quotas hold for all rounds together. */
function evaluate(context: PartyContext): Reply {
  const asked = context.recall<ReadonlyMap<string, Points>>(TO_EVALUATE);
  if (!asked.size) {
    refuse("protocol-failed", "The analyst asks to evaluate ids a second time.");
  }
  const key = drawScalar(context.lastingStream("key"));
  const envelopes = [...asked].map(([peer, points]): PeerMessage => {
    const answers = points.map((point) =>
      maskedPoint(point, key, "guard-refused", "A blinded id is no point."),
    );
    const content: IntersectionAnswers = {
      kind: "answers",
      elements: pointsArray(answers),
    };
    return { peer, content };
  });
  const nothing = new Map<string, Points>();
  return { contribution: EVALUATED, envelopes, remember: { [TO_EVALUATE]: nothing } };
}

function unblind(context: PartyContext, own: Identified): Reply {
  const answers = context.recall<Points>(ANSWERS);
  if (answers.length !== own.ids.length) {
    refuse("invalid-array", "The leader answered for other ids than this party sent.");
  }
  const stream = context.lastingStream("blinding");
  const values = answers.map((answer) => {
    const scalar = inverseOf(drawScalar(stream));
    return maskedPoint(answer, scalar, "protocol-failed", "An answer is no point.");
  });
  const { tokens, order } = tokensOf(context, own, values);
  const contribution: IntersectionShown = {
    kind: "shown",
    tokens: pointsArray(tokens),
  };
  return { contribution, remember: { [TOKEN_ORDER]: order, [ANSWERS]: [] } };
}

function commonPlaces(
  context: PartyContext,
  { data }: Bytes,
  own: Identified,
): readonly number[] {
  if (context.group("row").length === 1) return [...own.ids.keys()];
  const order = context.recall<readonly number[]>(TOKEN_ORDER);
  if (data.length !== order.length) {
    refuse(
      "invalid-array",
      "The analyst reports another number of tokens than were sent.",
    );
  }
  return order.filter((_, token) => data[token] === 1);
}

function receive(
  context: PartyContext,
  envelopes: readonly PeerMessage[],
): Readonly<Record<string, unknown>> {
  if (receiveSelected(context, envelopes)) return {};
  const [leader, ...others] = context.group("row");
  if (leader === context.slot) {
    const asked = others.map((slot): [string, Points] => [
      slot,
      blindedIds(context, slot, envelopes),
    ]);
    return { [TO_EVALUATE]: new Map(asked) };
  }
  const found = envelopes.find(({ peer }) => peer === leader)?.content;
  if (found?.kind !== "answers") {
    return refuse("envelope-refused", "A leader may send only answers.");
  }
  return { [ANSWERS]: pointsIn((found as IntersectionAnswers).elements) };
}

/** Refuses more ids from a member than the rows with which it joined. */
function blindedIds(
  context: PartyContext,
  slot: string,
  envelopes: readonly PeerMessage[],
): Points {
  const content = envelopes.find(({ peer }) => peer === slot)?.content;
  if (content?.kind !== "blinded-ids") {
    return refuse("envelope-refused", "The blinded ids of a member are missing.");
  }
  const points = pointsIn((content as IntersectionBlindedIds).elements);
  const quota = context.member(slot).n_rows;
  return points.length <= quota
    ? points
    : refuse("guard-refused", `'${slot}' asks for more ids than its ${quota} rows.`);
}

/** SHA-256 of each value and id, sorted: not the value, which is the key's. */
function tokensOf(context: PartyContext, { ids }: Identified, values: Points) {
  const label = lengthPrefixed("coterie/token/1", contextOf(context));
  const made = ids.map((id, place) =>
    digest(concat([label, values[place]!, utf8(id)])),
  );
  const order = [...made.keys()].sort((a, b) => Buffer.compare(made[a]!, made[b]!));
  return { tokens: order.map((place) => made[place]!), order };
}

/** The label that binds values and tokens to this agreement and row group. */
function contextOf({ agreement, place }: PartyContext): Uint8Array {
  const { terms, digest: agreed } = agreement;
  return lengthPrefixed("coterie/intersection/1", terms.session, agreed, place.row);
}

function maskedPoint(
  point: Uint8Array,
  scalar: bigint,
  problem: "guard-refused" | "protocol-failed",
  what: string,
): Uint8Array {
  try {
    return maskPoint(point, scalar);
  } catch {
    return refuse(problem, what);
  }
}

function counted(own: Identified, tokens: Points): IntersectionCounted {
  return { kind: "counted", n_ids: own.ids.length, tokens: pointsArray(tokens) };
}

function pointsArray(points: Points): Bytes {
  return { shape: [points.length, POINT_BYTES], data: concat(points) };
}

function pointsIn({ shape, data }: Bytes): Points {
  if (shape[1] !== POINT_BYTES) {
    refuse("invalid-array", `A point has ${POINT_BYTES} bytes.`);
  }
  return Array.from({ length: shape[0]! }, (_, number) =>
    data.subarray(number * POINT_BYTES, (number + 1) * POINT_BYTES),
  );
}
