/** Points of ristretto255 (RFC 9496), under a secret scalar. */

import { ristretto255, ristretto255_hasher } from "@noble/curves/ed25519.js";
import type { KeyedStream } from "./chance.ts";

const { Point } = ristretto255;
type RistrettoPoint = InstanceType<typeof Point>;

export const POINT_BYTES = 32;
export const WIDE_BYTES = 64; // reduced to a scalar, which is uniform but for 2^-256

/** The next scalar of a stream: 64 bytes, little-endian, modulo the order. */
export function drawScalar(stream: KeyedStream): bigint {
  const wide = Buffer.from(stream.take(WIDE_BYTES)).reverse();
  return Point.Fn.create(BigInt(`0x${wide.toString("hex")}`));
}

/** k · P of the point P that 64 bytes map to. */
export function maskWide(wide: Uint8Array, scalar: bigint): Uint8Array {
  return multiply(ristretto255_hasher.deriveToCurve!(wide) as RistrettoPoint, scalar);
}

/** k · B of a point's bytes; throws an error of the library if they are not a point. */
export function maskPoint(point: Uint8Array, scalar: bigint): Uint8Array {
  return multiply(Point.fromBytes(point), scalar);
}

function multiply(point: RistrettoPoint, scalar: bigint): Uint8Array {
  const found = point.multiply(scalar);
  if (found.equals(Point.ZERO)) throw new RangeError("A point is the neutral element.");
  return found.toBytes();
}
