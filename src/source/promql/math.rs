//! Functions of one number, and the operators of two.

use promql_parser::parser::token::{
    T_ADD, T_ATAN2, T_DIV, T_EQLC, T_GTE, T_GTR, T_LSS, T_LTE, T_MOD, T_MUL, T_NEQ, T_POW, T_SUB, TokenId,
};

/// A function of every element of a vector.
pub(super) fn function(name: &str) -> Option<fn(f64) -> f64> {
    Some(match name {
        "abs" => f64::abs,
        "ceil" => f64::ceil,
        "floor" => f64::floor,
        "exp" => f64::exp,
        "sqrt" => f64::sqrt,
        "ln" => f64::ln,
        "log2" => f64::log2,
        "log10" => f64::log10,
        "sgn" => sign,
        "sin" => f64::sin,
        "cos" => f64::cos,
        "tan" => f64::tan,
        "asin" => f64::asin,
        "acos" => f64::acos,
        "atan" => f64::atan,
        "sinh" => f64::sinh,
        "cosh" => f64::cosh,
        "tanh" => f64::tanh,
        "asinh" => f64::asinh,
        "acosh" => f64::acosh,
        "atanh" => f64::atanh,
        "deg" => f64::to_degrees,
        "rad" => f64::to_radians,
        _ => return None,
    })
}

/// Minus one, plus one, or the value itself when it is zero or NaN.
fn sign(value: f64) -> f64 {
    if value < 0.0 {
        -1.0
    } else if value > 0.0 {
        1.0
    } else {
        value
    }
}

/// To the nearest multiple of `to`, halves upwards.
pub(super) fn round(value: f64, to: f64) -> f64 {
    // Multiplying by the inverse instead of dividing keeps round(x, 0.1) free of most binary noise.
    let inverse = 1.0 / to;
    (value * inverse + 0.5).floor() / inverse
}

/// The larger one; NaN when either is NaN (unlike `f64::max`).
pub(super) fn max(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}

/// The smaller one; NaN when either is NaN.
pub(super) fn min(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.min(b) }
}

/// An arithmetic operator; `None` for any other token.
pub(super) fn arithmetic(operator: TokenId) -> Option<fn(f64, f64) -> f64> {
    Some(match operator {
        T_ADD => |a, b| a + b,
        T_SUB => |a, b| a - b,
        T_MUL => |a, b| a * b,
        T_DIV => |a, b| a / b,
        T_MOD => |a, b| a % b,
        T_POW => f64::powf,
        T_ATAN2 => f64::atan2,
        _ => return None,
    })
}

/// A comparison operator; `None` for any other token.
pub(super) fn comparison(operator: TokenId) -> Option<fn(f64, f64) -> bool> {
    Some(match operator {
        T_EQLC => |a, b| a == b,
        T_NEQ => |a, b| a != b,
        T_GTR => |a, b| a > b,
        T_LSS => |a, b| a < b,
        T_GTE => |a, b| a >= b,
        T_LTE => |a, b| a <= b,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_takes_halves_upwards_and_knows_a_unit() {
        assert_eq!([round(2.5, 1.0), round(-2.5, 1.0), round(12.0, 5.0), round(0.34, 0.1)], [3.0, -2.0, 10.0, 0.3]);
    }

    #[test]
    fn nan_wins_in_extremes_and_zero_has_no_sign() {
        assert!(max(f64::NAN, 1.0).is_nan() && min(1.0, f64::NAN).is_nan());
        assert_eq!([sign(-3.0), sign(0.0), sign(7.0)], [-1.0, 0.0, 1.0]);
    }
}
