/** The protocols of which this client is a party. */

import type { Terms } from "../roster/terms.ts";
import type { Protocol } from "../session/engine.ts";
import { refuse } from "../wire/problems.ts";
import { dc } from "./dc/dc.ts";
import { dummy } from "./dummy.ts";
import { INSTEAD } from "./params.ts";
import { llf } from "./llf/llf.ts";

const PROTOCOLS: Readonly<Record<string, (terms: Terms) => Protocol>> = {
  dummy,
  dc,
  llf,
};

/** The protocol of terms; refuses one that this client does not support. */
export function protocolOf(terms: Terms): Protocol {
  const { name, version } = terms.protocol;
  const known = Object.hasOwn(PROTOCOLS, name) ? PROTOCOLS[name] : undefined;
  if (!known)
    return refuse(
      "invalid-parameters",
      `This client has no part in ${name}. ${INSTEAD}`,
    );
  const protocol = known(terms);
  if (protocol.version !== version) {
    refuse(
      "version-mismatch",
      `This client supports ${name} in v${protocol.version} only.`,
    );
  }
  return protocol;
}
