/** How a party joins: what it accepts, and how it takes its slot. */

import type { Analyst, Preview } from "../analyst/analyst.ts";
import { protocolOf } from "../protocols/index.ts";
import { hex } from "../wire/bytes.ts";
import { asProblem, refuse } from "../wire/problems.ts";
import type { Invitation } from "./invitation.ts";
import { proveJoin, type Member } from "./roster.ts";
import { readShownTerms, type Terms } from "./terms.ts";

const ATTEMPTS = 5;

export function checkPreview(preview: Preview, invitation: Invitation): Terms {
  const terms = readShownTerms(preview.terms, invitation);
  if (preview.slot !== invitation.slot) {
    refuse("agreement-mismatch", "The analyst previews another slot.");
  }
  return terms;
}

/** Refuses terms with risks that nobody accepted, or that this client cannot keep. */
export function checkAcceptable(terms: Terms, accepted: readonly string[]): void {
  const open = terms.risks.filter((code) => !accepted.includes(code));
  if (open.length) {
    refuse(
      "risk-not-accepted",
      `Not accepted: ${open.join(", ")}. Read what they mean in docs/messages.md first.`,
    );
  }
  protocolOf(terms);
}

export function checkSameInvitation(first: Invitation, later: Invitation): void {
  const [a, b] = [first, later].map(({ url, secret, terms, coordinator }) =>
    [url, hex(secret), terms, coordinator].join(),
  );
  if (a !== b) {
    refuse(
      "guard-refused",
      "This party joined with another invitation: use that one, or another home.",
    );
  }
}

/** The token of a slot; a repeat after a lost answer needs another proof. */
export async function takeSlot(
  analyst: Analyst,
  terms: Terms,
  member: Member,
  code: string,
  signing: Uint8Array,
): Promise<string> {
  for (let attempt = 1; ; attempt++) {
    const { joins } = await analyst.preview(code);
    const proof = proveJoin(terms, member, code, joins, signing);
    try {
      return await analyst.join(code, member, proof);
    } catch (error) {
      const isLate = asProblem(error).type === "key-not-authentic";
      if (!isLate || attempt === ATTEMPTS) throw error;
      if ((await analyst.preview(code)).joins === joins) throw error;
    }
  }
}
