/** Opening and closing: every party signs the transcript. */

import { isSigned, sign } from "../secrecy/keys.ts";
import { hex, lengthPrefixed } from "../wire/bytes.ts";
import { refuse } from "../wire/problems.ts";
import type { PartyContext, Role, Stage } from "./contract.ts";

export const OPENING = "opening";
export const CLOSING = "closing";

const SIGNED = { kind: "signed" } as const;

/** Signs the transcript up to the round in hand. */
export const signer: Role = {
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

/**
 * Refuses signatures of fewer slots than `least`, or of another transcript.
 *
 * @param keys Ed25519 keys (hex) of all slots, in order
 * @param signatures of all slots; 64 zeros of those that did not sign
 */
export function checkSignatures(
  keys: Readonly<Record<string, string>>,
  stage: string,
  transcript: string,
  signatures: readonly Uint8Array[],
  least: number,
): void {
  const slots = Object.entries(keys);
  const signed = signatures.filter((each) => each.some(Boolean));
  if (signatures.length !== slots.length || signed.length < least) {
    refuse("protocol-failed", "The signatures of all slots are missing.");
  }
  const said = statement(stage, transcript);
  slots.forEach(([slot, key], index) => {
    const signature = signatures[index]!;
    if (signature.some(Boolean) && !isSigned(key, said, signature)) {
      refuse(
        "protocol-failed",
        `'${slot}' signed another transcript than this party received.`,
      );
    }
  });
}

/** The signed text: the transcript (hex) of the opening or of the closing. */
export function statement(stage: string, transcript: string): Uint8Array {
  return lengthPrefixed("coterie/transcript/1", stage, transcript);
}
