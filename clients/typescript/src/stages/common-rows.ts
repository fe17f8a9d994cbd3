/** A party selects the common rows of its row group, whichever way they were found. */

import type { Alignment } from "../alignment/params.ts";
import type { AlignmentDigests } from "../generated/shared.ts";
import {
  SELECTION,
  type PartyContext,
  type PeerMessage,
  type Reply,
  type Selection,
  type Table,
} from "../session/contract.ts";
import { refuse } from "../wire/problems.ts";
import { checkLeaders, digestReply, digestsOf, rowOrder } from "./digests.ts";

/** Own rows in the order of the row group, and what its members know of them. */
export interface CommonRows {
  readonly rows: readonly number[];
  readonly names: readonly string[];
}

/** Digests of the common rows in their order; from now on only these rows count. */
export function selectCommon(
  context: PartyContext,
  alignment: Alignment,
  table: Table,
  { rows, names }: CommonRows,
  counts: Readonly<Record<string, number>>,
): Reply {
  checkCounts(context, alignment, counts, rows.length);
  const ascending = [...rows].sort((a, b) => a - b);
  const canonical = new Map(ascending.map((row, place) => [row, place]));
  const order = rowOrder(context, rows.length).map((place) =>
    canonical.get(rows[place]!)!,
  );
  const digests: AlignmentDigests = digestsOf(context, names, table.columns);
  const selection: Selection = { rows: ascending, counts };
  return {
    ...digestReply(context, digests),
    remember: { digests, order, [SELECTION]: selection },
  };
}

/** Whether common rows are selected: what comes then are digests of leaders alone. */
export function receiveSelected(
  context: PartyContext,
  envelopes: readonly PeerMessage[],
): boolean {
  if (!context.memory.has(SELECTION)) return false;
  if (envelopes.some(({ content }) => content.kind !== "digests")) {
    refuse("envelope-refused", "A leader may send only digests of the common rows.");
  }
  checkLeaders(context, envelopes);
  return true;
}

function checkCounts(
  context: PartyContext,
  alignment: Alignment,
  counts: Readonly<Record<string, number>>,
  selected: number,
): void {
  const { guards } = context.agreement.terms;
  const needed = Math.max(alignment.minimumOverlap, guards.minimum_rows);
  const isShared = context.group("row").length > 1;
  if (isShared && selected < needed) {
    refuse(
      "guard-refused",
      `Fewer rows are common than the ${needed} that the terms require.`,
    );
  }
  const isPossible = context.slots.every((slot) => {
    const count = counts[slot] ?? 0;
    return count >= 1 && count <= context.member(slot).n_rows;
  });
  const isSame = context.group("row").every((slot) => counts[slot] === selected);
  const isOfAll = Object.keys(counts).length === context.slots.length;
  if (!isPossible || !isSame || !isOfAll) {
    refuse(
      "protocol-failed",
      "The analyst reports numbers of rows that are impossible.",
    );
  }
}
