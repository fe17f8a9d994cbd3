/** Keyed digests by which groups see that they hold the same, and the order of rows. */

import type { AlignmentDigests } from "../generated/shared.ts";
import type { PartyContext, PeerMessage, Reply } from "../session/contract.ts";
import { refuse } from "../wire/problems.ts";
import { groupDigestOf, groupStream, leadersOf, ledBy, type Scope } from "./secrets.ts";

const FIELDS: Readonly<Record<Scope, "rows" | "columns">> = {
  row: "rows",
  column: "columns",
};

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

/** What was received, row by row, in the order of the own rows. */
export function inOwnOrder<T>(
  order: readonly number[],
  travelled: readonly T[],
): readonly T[] {
  if (travelled.length !== order.length) {
    refuse("invalid-array", "The labels are not as many as this party's rows.");
  }
  const own = new Array<T>(order.length);
  order.forEach((row, place) => (own[row] = travelled[place]!));
  return own;
}
