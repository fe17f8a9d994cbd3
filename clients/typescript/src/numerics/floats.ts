/** Functions on float64 that the wire needs and JavaScript lacks. */

const BITS = new DataView(new ArrayBuffer(8));
const SUBNORMAL_SCALE = 54;
const LARGEST_WITH_FRACTION = 2 ** 52;

/** e with 2^(e-1) ≤ |x| < 2^e; 0 of zero. */
export function exponentOf(x: number): number {
  if (x === 0) return 0;
  BITS.setFloat64(0, x);
  const exponent = (BITS.getUint16(0) >> 4) & 0x7ff;
  return exponent === 0
    ? exponentOf(x * 2 ** SUBNORMAL_SCALE) - SUBNORMAL_SCALE
    : exponent - 1022;
}

/** The nearest whole number; of two the even one. */
export function roundToEven(x: number): number {
  if (Math.abs(x) >= LARGEST_WITH_FRACTION) return x;
  const below = Math.floor(x);
  const rest = x - below;
  if (rest === 0.5) return below % 2 === 0 ? below : below + 1;
  return rest < 0.5 ? below : below + 1;
}
