/** Stage: rows and columns of groups are the same, and rows travel in a secret order. */

import { normalisedId } from "../alignment/identifiers.ts";
import type { Alignment } from "../alignment/params.ts";
import type { AlignmentDigests } from "../generated/dc.ts";
import type { PartyContext, PeerMessage, Reply, Stage } from "../session/contract.ts";
import { refuse } from "../wire/problems.ts";
import { groupDigestOf, groupStream, leadersOf, ledBy, type Scope } from "./secrets.ts";

const FIELDS: Readonly<Record<Scope, "rows" | "columns">> = {
  row: "rows",
  column: "columns",
};

/** The stage of rows that parties bring in one order, as the terms compare their ids. */
export function alignmentStage({ normalisation }: Alignment): Stage {
  return {
    name: "alignment",
    exchanges: [{ task: "compare-digests", answer: "digests" }],
    envelopes: ["digests"],
    role: {
      reply(context, _, { ids, rows, columns }) {
        const names = ids
          ? ids.map((id) => normalisedId(id, normalisation))
          : [`rows:${rows.length}`];
        const own = digestsOf(context, names, columns);
        const order = rowOrder(context, rows.length);
        return { ...digestReply(context, own), remember: { digests: own, order } };
      },
      receive(context, envelopes) {
        checkLeaders(context, envelopes);
        return {};
      },
    },
  };
}

export function digestsOf(
  context: PartyContext,
  ids: readonly string[],
  columns: readonly string[],
): AlignmentDigests {
  const isShared = context.group("row").length > 1;
  const rows = isShared ? ids : [];
  return {
    kind: "digests",
    rows: groupDigestOf(context, "row", "alignment/row", rows),
    columns: groupDigestOf(context, "column", "alignment/column", columns),
  };
}

/** The reply with a party's digests, for the analyst and for those that it leads. */
export function digestReply(context: PartyContext, own: AlignmentDigests): Reply {
  return {
    contribution: own,
    envelopes: ledBy(context).map((peer) => ({ peer, content: own })),
    awaits: leadersOf(context),
  };
}

/** Refuses leaders that hold other rows or columns than the digests in memory say. */
export function checkLeaders(
  context: PartyContext,
  envelopes: readonly PeerMessage[],
): void {
  const own = context.recall<AlignmentDigests>("digests");
  const told = new Map(envelopes.map(({ peer, content }) => [peer, content]));
  for (const [scope, field] of Object.entries(FIELDS)) {
    const leader = context.group(scope as Scope)[0]!;
    const theirs = told.get(leader) as AlignmentDigests | undefined;
    if (theirs && theirs[field] !== own[field]) {
      refuse("protocol-failed", `'${leader}' holds other ${field} than this party.`);
    }
  }
}

/** The order in which rows travel: `order[k]` is the own row at place k. */
export function rowOrder(context: PartyContext, rows: number): readonly number[] {
  return groupStream(context, "row", "row-order").permutation(rows);
}

/** What travelled, row by row, in the order of the own rows. */
export function inOwnOrder<T>(
  order: readonly number[],
  travelled: readonly T[],
): readonly T[] {
  if (travelled.length !== order.length) {
    refuse("invalid-array", "There are labels of other rows than this party has.");
  }
  const own = new Array<T>(order.length);
  order.forEach((row, place) => (own[row] = travelled[place]!));
  return own;
}
