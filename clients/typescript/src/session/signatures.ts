/** Opening and closing: everybody signs what everybody was told. */

import { isSigned, sign } from "../secrecy/keys.ts";
import { hex, lengthPrefixed } from "../wire/bytes.ts";
import { refuse } from "../wire/problems.ts";
import type { Agreement } from "../roster/roster.ts";
import type { PartyContext, Role, Stage } from "./contract.ts";

export const OPENING = "opening";
export const CLOSING = "closing";

const SIGNED = { kind: "signed" } as const;

const signer: Role = {
  reply(context: PartyContext) {
    const said = statement(context.stage, context.transcript);
    const signature = hex(sign(context.keys.signing, said));
    return { contribution: { ...SIGNED, signature } };
  },
};

export function openingStage(): Stage {
  return {
    name: OPENING,
    exchanges: [{ task: "sign", answer: "signed" }],
    role: signer,
  };
}

/** The last stage, which reads the results as the protocol's own last one does. */
export function closingStage(last: Stage): Stage {
  const { conclude } = last.role;
  return {
    name: CLOSING,
    exchanges: [{ task: "sign", answer: "signed" }],
    results: last.results ?? [],
    resultsTo: last.resultsTo ?? "all",
    role: conclude ? { ...signer, conclude } : signer,
  };
}

/** Refuses signatures of fewer than all slots, or of another transcript. */
export function checkSignatures(
  agreement: Agreement,
  stage: string,
  transcript: string,
  signatures: readonly Uint8Array[],
): void {
  if (signatures.length !== agreement.roster.length) {
    refuse("protocol-failed", "The signatures of all slots are missing.");
  }
  const said = statement(stage, transcript);
  agreement.roster.forEach(({ slot, keys }, index) => {
    if (!isSigned(keys.ed25519, said, signatures[index]!)) {
      refuse(
        "protocol-failed",
        `'${slot}' has signed something else than was told here.`,
      );
    }
  });
}

function statement(stage: string, transcript: string): Uint8Array {
  return lengthPrefixed("coterie/transcript/1", stage, transcript);
}
