/** Stage: the first slot of each group draws a secret and seals it to the others. */

import type { SecretsGroupSecret, SecretsSecretsShared } from "../generated/shared.ts";
import { KeyedStream } from "../secrecy/chance.ts";
import { groupDigest, groupKey } from "../secrecy/group-keys.ts";
import { hmacHex } from "../secrecy/keys.ts";
import type { SumMember } from "../secrecy/sums.ts";
import type { PartyContext, PeerMessage, Role, Stage } from "../session/contract.ts";
import { hex, unhex } from "../wire/bytes.ts";
import { refuse } from "../wire/problems.ts";

export type Scope = "row" | "column";

const SCOPES: readonly Scope[] = ["row", "column"];
const SECRET_BYTES = 32;
const SHARED: SecretsSecretsShared = { kind: "secrets-shared" };

const keeper: Role = {
  reply(context) {
    const remember: Record<string, string> = {};
    const envelopes: PeerMessage[] = [];
    for (const scope of SCOPES) {
      const [leader, ...others] = context.group(scope);
      if (leader !== context.slot) continue;
      const secret = hex(context.stream(`secret/${scope}`).take(SECRET_BYTES));
      remember[secretName(scope)] = secret;
      const content: SecretsGroupSecret = { kind: "group-secret", scope, secret };
      envelopes.push(...others.map((peer) => ({ peer, content })));
    }
    const awaits = leadersOf(context);
    return { contribution: SHARED, envelopes, awaits, remember };
  },
  receive(context, envelopes) {
    const secrets = envelopes.map(({ peer, content }) => {
      const { scope, secret } = content as SecretsGroupSecret;
      if (context.group(scope)[0] !== peer) {
        return refuse(
          "envelope-refused",
          "A secret came from a slot that leads no group.",
        );
      }
      return [secretName(scope), secret];
    });
    return Object.fromEntries(secrets) as Record<string, string>;
  },
};

export const SECRETS: Stage = {
  name: "secrets",
  exchanges: [{ task: "share-secrets", answer: "secrets-shared" }],
  envelopes: ["group-secret"],
  role: keeper,
};

/** The leaders of a party's groups, but itself; each once. */
export function leadersOf(context: PartyContext): readonly string[] {
  const leaders = new Set(SCOPES.map((scope) => context.group(scope)[0]!));
  leaders.delete(context.slot);
  return [...leaders];
}

/** The other members of the groups that a party leads. */
export function ledBy(context: PartyContext): readonly string[] {
  return SCOPES.flatMap((scope) => {
    const [leader, ...others] = context.group(scope);
    return leader === context.slot ? others : [];
  });
}

/** The stream of random numbers that all members of a group share, for one purpose. */
export function groupStream(
  context: PartyContext,
  scope: Scope,
  purpose: string,
): KeyedStream {
  return new KeyedStream(keyOf(context, scope, purpose));
}

/** HMAC-SHA256 (hex) over texts under a group's key. */
export function groupDigestOf(
  context: PartyContext,
  scope: Scope,
  purpose: string,
  names: Iterable<string>,
): string {
  return groupDigest(keyOf(context, scope, purpose), names);
}

/** HMAC-SHA256 (hex) over bytes under a group's key. */
export function groupDigestOfBytes(
  context: PartyContext,
  scope: Scope,
  purpose: string,
  content: Uint8Array,
): string {
  return hmacHex(keyOf(context, scope, purpose), content);
}

/** A party as a member of the sums of one of its groups. */
export function sumMember(context: PartyContext, scope: Scope): SumMember {
  return {
    slot: context.slot,
    slots: context.slots,
    pairStream: (peer, ...labels) => context.pairStream(peer, ...labels),
    groupStream: (purpose) => groupStream(context, scope, purpose),
  };
}

function keyOf(context: PartyContext, scope: Scope, purpose: string): Uint8Array {
  const secret = unhex(context.recall<string>(secretName(scope)));
  return groupKey(secret, context.agreement.digest, purpose);
}

function secretName(scope: Scope): string {
  return `${scope}-secret`;
}
