/** Who signs a party's line of the roster: an institution's name and key. */

import { randomBytes } from "node:crypto";
import path from "node:path";
import { hex, textOf, unhex } from "../wire/bytes.ts";
import { makeFolder, readIfThere, writeDurably } from "./durable-files.ts";

export interface Institution {
  readonly name: string;
  /** The private key, 32 bytes of Ed25519. */
  readonly key: Uint8Array;
}

/** The institution of a home; on first use a new one without a name. */
export function loadInstitution(home: string): Institution {
  const file = path.join(home, "identity.json");
  const found = readIfThere(file);
  if (found) {
    const kept = JSON.parse(textOf(found)) as { name: string; private_key: string };
    return { name: kept.name, key: unhex(kept.private_key) };
  }
  makeFolder(home);
  const key = new Uint8Array(randomBytes(32));
  writeDurably(file, JSON.stringify({ name: "", private_key: hex(key) }));
  return { name: "", key };
}
