/** Invitations: one string with everything that a party needs to join. */

import { isSigned } from "../secrecy/keys.ts";
import { lengthPrefixed, unhex } from "../wire/bytes.ts";
import { refuse } from "../wire/problems.ts";

export interface Invitation {
  readonly url: string;
  readonly session: string;
  readonly slot: string;
  readonly code: string;
  readonly secret: Uint8Array;
  /** Digest of the terms, which the coordinator signed. */
  readonly terms: string;
  readonly coordinator: string;
}

const NAME = "[a-z0-9][a-z0-9._-]{0,62}";
const SIGN = "#coterie-2/";
const FORM = new RegExp(
  `^(?<url>https?://[^\\s#]+)#coterie-2/(?<session>${NAME})/(?<slot>${NAME})/` +
    "(?<code>[\\w-]+)/(?<secret>[0-9a-f]{64})/(?<terms>[0-9a-f]{64})/" +
    "(?<coordinator>[0-9a-f]{64})/(?<signature>[0-9a-f]{128})",
);

/**
 * The invitation in a string, such as a mail that has wrapped it.
 *
 * Throws `invitation-unreadable` if the text is not an invitation.
 */
export function readInvitation(text: string): Invitation {
  const found = FORM.exec(unwrapped(text))?.groups;
  if (!found) return refuse("invitation-unreadable", "This is not an invitation.");
  const { url, session, slot, code, secret, terms, coordinator, signature } =
    found as Record<string, string>;
  const statement = lengthPrefixed("coterie/terms/1", terms!);
  if (!isSigned(coordinator!, statement, unhex(signature!))) {
    refuse("invitation-unreadable", "The coordinator did not sign this invitation.");
  }
  return {
    url: url!.replace(/\/+$/, ""),
    session: session!,
    slot: slot!,
    code: code!,
    secret: unhex(secret!),
    terms: terms!,
    coordinator: coordinator!,
  };
}

function unwrapped(text: string): string {
  const at = text.lastIndexOf(SIGN);
  if (at < 0) return text;
  const address = text.slice(0, at).split(/\s+/).at(-1)!;
  const rest = text.slice(at + SIGN.length).replaceAll(/[\s>]+/g, "");
  return address.replace(/^[<("']+/, "") + SIGN + rest;
}
