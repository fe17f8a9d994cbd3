/**
 * Values as points of ristretto255 under the keys of several parties, one after the other.
 *
 * A value that went through all of them is the same whichever came first. To mask a
 * guessed value takes every party's help.
 */

import { createHash } from "node:crypto";
import { lengthPrefixed } from "../wire/bytes.ts";
import type { KeyedStream } from "./chance.ts";
import { drawScalar, maskPoint, maskWide, WIDE_BYTES } from "./ristretto.ts";

export class JointMask {
  readonly #key: bigint;

  constructor(stream: KeyedStream) {
    this.#key = drawScalar(stream);
  }

  /** k · H(value) of each value, and a random point for none; others of each purpose. */
  begin(
    values: readonly (string | Uint8Array | undefined)[],
    purpose: Uint8Array,
    filler: KeyedStream,
  ): readonly Uint8Array[] {
    const hashed = createHash("sha512").update(
      lengthPrefixed("coterie/joint-mask/1", purpose),
    );
    return values.map((value) => {
      const wide =
        value === undefined
          ? filler.take(WIDE_BYTES)
          : new Uint8Array(hashed.copy().update(value).digest());
      return maskWide(wide, this.#key);
    });
  }

  /** k · P of a point; throws an error of the library if it is not a point. */
  goOn(point: Uint8Array): Uint8Array {
    return maskPoint(point, this.#key);
  }
}
