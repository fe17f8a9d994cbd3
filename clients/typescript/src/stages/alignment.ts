/** Stage: rows and columns of groups are the same, and rows travel in a secret order. */

import { normalisedId } from "../alignment/identifiers.ts";
import type { Alignment } from "../alignment/params.ts";
import type { Agreement } from "../roster/roster.ts";
import type { Stage } from "../session/contract.ts";
import { checkLeaders, digestReply, digestsOf, rowOrder } from "./digests.ts";
import { linkageStage } from "./linkage.ts";

/** The stage that aligns rows, as the terms say. */
export function alignmentStage(
  alignment: Alignment,
  agreement: Agreement,
  slot: string,
): Stage {
  return alignment.method === "ecdh"
    ? linkageStage(alignment, agreement, slot)
    : comparingStage(alignment);
}

/** Parties bring the same rows in one order, by ids or by position. */
function comparingStage({ normalisation }: Alignment): Stage {
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
