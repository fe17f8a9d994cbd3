/**
 * The inverse of the normal distribution function, to about 16 digits.
 *
 * M. Wichura, "Algorithm AS 241: The percentage points of the normal distribution",
 * Applied Statistics 37 (1988), 477–484: three rational functions of degree seven.
 */

type Coefficients = readonly number[];

interface Rational {
  readonly above: Coefficients;
  readonly below: Coefficients;
}

const CENTRAL: Rational = {
  above: [
    2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4,
    4.5921953931549871457e4, 1.3731693765509461125e4, 1.9715909503065514427e3,
    1.3314166789178437745e2, 3.387132872796366608,
  ],
  below: [
    5.226495278852854561e3, 2.8729085735721942674e4, 3.930789580009271061e4,
    2.1213794301586595867e4, 5.394196021424751107e3, 6.871870074920579083e2,
    4.2313330701600911252e1, 1,
  ],
};
const MIDDLE: Rational = {
  above: [
    7.7454501427834140764e-4, 2.27238449892691845833e-2, 2.4178072517745061177e-1,
    1.27045825245236838258, 3.64784832476320460504, 5.7694972214606914055,
    4.6303378461565452959, 1.42343711074968357734,
  ],
  below: [
    1.05075007164441684324e-9, 5.475938084995344946e-4, 1.51986665636164571966e-2,
    1.4810397642748007459e-1, 6.8976733498510000455e-1, 1.6763848301838038494,
    2.05319162663775882187, 1,
  ],
};
const TAIL: Rational = {
  above: [
    2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.2426609473880784386e-3,
    2.6532189526576123093e-2, 2.9656057182850489123e-1, 1.7848265399172913358,
    5.4637849111641143699, 6.6579046435011037772,
  ],
  below: [
    2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5,
    7.868691311456132591e-4, 1.4875361290850615025e-2, 1.3692988092273580531e-1,
    5.9983220655588793769e-1, 1,
  ],
};

/** x with Φ(x) = p, for 0 < p < 1. */
export function normalQuantile(p: number): number {
  const away = p - 0.5;
  if (Math.abs(away) <= 0.425) {
    return away * ratio(CENTRAL, 0.180625 - away * away);
  }
  const depth = Math.sqrt(-Math.log(Math.min(p, 1 - p)));
  const found = depth <= 5 ? ratio(MIDDLE, depth - 1.6) : ratio(TAIL, depth - 5);
  return away < 0 ? -found : found;
}

function ratio({ above, below }: Rational, x: number): number {
  return polynomial(above, x) / polynomial(below, x);
}

/** Highest power first. */
function polynomial(coefficients: Coefficients, x: number): number {
  return coefficients.reduce((sum, each) => sum * x + each, 0);
}
