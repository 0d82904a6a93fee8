"""The search for bottom eigenvectors: grow a Krylov space, compute its Ritz pairs, check them, repeat if one fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sentfold.errors import SolverError
from sentfold.manifold.solver.krylov import Filter, KrylovSpace, Ritz
from sentfold.manifold.solver.product import WIDE, WIDTH, Operator
from sentfold.manifold.solver.ritz import Candidates, Demands, rayleigh_ritz, smallest_outside
from sentfold.manifold.solver.spectrum import HIGHEST_CUT, Spectrum

Float64 = npt.NDArray[np.float64]
Progress = Callable[[int, float], None]

SPARE = 32  # further vectors, beyond the wanted ones, for which a space has room
TAKEN = 16  # further Ritz pairs that are computed too: the gap to the last one bounds the errors of the wanted ones
ROOM = {WIDTH: 8, WIDE: 9.5}  # vectors in a space per wanted vector; wider blocks need more
LARGE = 40_000  # rows from which on a step costs more than a computation of Ritz pairs
TRIES = 8
STRENGTH = 2.4  # of the filter at n = 5,000; a stronger one needs a smaller space and more products
STRONGEST = 16.0  # such a filter multiplies a null vector by about e^32, which float32 can still represent
# (degree, cut as a fraction of the largest eigenvalue) of float64 filters of M. A filter removes the errors that
# rounding and damping cause in directions of larger eigenvalues. The next filter is used when one no longer helps.
POLISH = ((7, 0.07), (20, 0.01), (60, 0.001))
POLISHES = 12  # largest number of applications of these filters
FASTEST = 2e-4  # smallest tolerance for which float32 products with the damped operator are tried
BULK = 0.002  # share of an error in directions of large eigenvalues that is left after the polish


@dataclass(frozen=True)
class Found:
    """Candidates that passed every check, with rows in the order of the sentences, and how they were found."""

    candidates: Candidates
    outside: float
    largest: float
    products: int
    degree: int
    basis: int
    precision: str


class Search:
    """One search; `run` may be called once."""

    def __init__(
        self,
        operator: Operator,
        demands: Demands,
        spectrum: Spectrum,
        rng: np.random.Generator,
        progress: Progress | None = None,
    ) -> None:
        self.operator, self.demands, self.spectrum, self.rng, self.progress = operator, demands, spectrum, rng, progress
        self.largest, self.target = spectrum.largest, demands.tolerance
        # For large n, products are expensive because rows are not in a cache; the work on the space grows only like n.
        self.strength = STRENGTH * float(np.clip((5000 / operator.n) ** 0.3, 0.38, 1.2))
        self.polish = [Filter(cut * self.largest, self.largest, degree) for degree, cut in POLISH]
        # M 1 = 0 exactly, so the constant vector is known and left out of the search.
        self.constant = np.full((operator.n, 1), operator.n**-0.5)

    def run(self, wanted: int) -> Found:
        """Find `wanted` vectors, null vectors included; more if more of them are null than expected.

        Raises SolverError if no try of TRIES passes every check.
        """
        self.wanted = wanted
        self.cut = self.spectrum.cut_above(3 * (wanted + SPARE))
        # The polish removes nine tenths of float32's rounding error, about eps |M|, and enough of the damping's error.
        rounding = float(np.finfo(np.float32).eps) * self.largest / 10
        tolerance = self.demands.tolerance
        self.fast = tolerance >= FASTEST and tolerance * self.cut / 3 >= rounding
        self._start()
        for _ in range(TRIES):
            ritz = self._grow()
            if ritz is None:
                complaint = f"a Krylov space of {self.space.size} vectors did not converge"
                self._filter_otherwise()
                continue
            candidates = self._take_apart(ritz)
            complaint, mend = self._complaint(candidates)
            if not complaint:
                outside, omitted = smallest_outside(
                    self.space, ritz, candidates.vectors, last=self._last(candidates), polish=self.polish[0]
                )
                # An eigenvalue equal to the last one up to rounding is not an omission: either may be the p-th.
                last = self._last(candidates)
                if outside >= last * (1 - 1e-6):
                    return self._found(candidates, outside)
                complaint = f"eigenvalue {outside:.6g} was left out below {last:.6g}"
                if self.space.is_full:
                    self._start()
                else:
                    self.space.put_in(omitted)
            else:
                mend()
        raise _uncertified(self.operator, self.demands, complaint)

    # --- growing ---------------------------------------------------------------------------------

    def _start(self) -> None:
        """Make a new space from one random block."""
        width = self.operator.width
        if ROOM[width] * (self.wanted + SPARE) > self.operator.n // 2:
            width = WIDTH  # a space with this little room cannot use wider blocks
        self.space = KrylovSpace(
            self.operator,
            Filter.for_cut(
                self.cut,
                self.spectrum.damped if self.fast else self.largest,
                strength=self.strength,
                damped=self.fast,
            ),
            self.rng,
            capacity=min(int(ROOM[width] * (self.wanted + SPARE)) + 8 * WIDTH, self.operator.n // 2),
            width=width,
            precision=self.precision,
            without=self.constant,
        )

    def _grow(self) -> Ritz | None:
        """Extend the space until its Ritz pairs promise the target residual; None if the space is full before."""
        space, count, looked = self.space, self.wanted + TAKEN - 1, list[tuple[int, float]]()
        # The first computation of Ritz pairs is earlier in a small space, so that there is room for a second one.
        look_at = max(min(int(3.9 * self.wanted), space.capacity - 2 * space.width), count)
        while not space.is_full:
            space.extend()
            if space.applied < max(look_at, count):
                continue
            ritz = space.ritz(count)
            promise = self._promise(ritz)
            if self.progress:
                self.progress(space.applied, promise)
            if promise <= self.target:
                return ritz
            if promise == np.inf:
                return None
            looked.append((space.applied, np.log(promise / self.target)))
            # Ritz pairs cost as much as a few steps for small n; for large n they cost less than a step.
            share = 0.9 if self.operator.n < LARGE else 0.4
            look_at = space.applied + _steps_ahead(looked, share, space.width) * space.width
        return None

    def _promise(self, ritz: Ritz) -> float:
        """The largest expected residual of a wanted vector of M, as a fraction of the last eigenvalue.

        It is computed from the residuals of F(M). An error in directions of nearby eigenvalues is divided by the
        slope of F; an error in the other directions, whose mean eigenvalue is trace / n, is divided by F. The polish
        removes most of the latter.
        """
        last = self.wanted - 1  # the constant vector is not in the space
        if ritz.values[last - 1] < 1 and self.space.applied >= 3 * self.wanted + 2 * WIDTH:
            return np.inf  # F is at most 1, and so flat, at some wanted eigenvalues
        values = np.maximum(ritz.values[:last], 1.0)
        bulk = 2 * self.operator.trace / self.operator.n / values
        rate = 1 / self.space.filter.slope(values) + BULK * bulk
        eigenvalue = float(self.space.filter.invert(values[-1:])[0])
        return float((ritz.residuals[:last] * rate).max()) / max(eigenvalue, self.demands.null_tolerance)

    def _filter_otherwise(self) -> None:
        """After a full space start again, with a higher cut if F was flat at wanted eigenvalues, else a stronger F."""
        last = float(self.space.ritz(self.wanted).values[-1])
        if last < 1.5 and self.cut < HIGHEST_CUT * self.spectrum.damped:
            self.cut = min(4 * self.cut, HIGHEST_CUT * self.spectrum.damped)
        else:
            self.strength = min(1.5 * self.strength, STRONGEST)
        self._start()

    # --- taking apart ----------------------------------------------------------------------------

    def _take_apart(self, ritz: Ritz) -> Candidates:
        """The Ritz pairs of M itself, in float64, with the constant vector."""
        vectors = self.space.vectors(ritz, before=self.constant)
        for _ in range(2 if self.fast else 0):  # they surely have errors of rounding and damping
            self.polish[0].apply(self.operator, vectors, in_place=True)
        candidates = rayleigh_ritz(self.operator, vectors)
        worst, level = self._worst(candidates), int(self.fast)
        for _ in range(POLISHES):
            if worst <= self.demands.tolerance or level == len(self.polish):
                break
            before = worst
            self.polish[level].apply(self.operator, candidates.vectors, in_place=True)
            candidates = rayleigh_ritz(self.operator, candidates.vectors)
            worst = self._worst(candidates)
            level += worst > before / 2
        return candidates

    def _worst(self, candidates: Candidates) -> float:
        """The largest residual of a wanted vector, as a fraction of the last value."""
        keep = min(candidates.null(self.demands) + self.demands.p, len(candidates.values))
        return float(candidates.residuals[:keep].max() / candidates.values[keep - 1])

    @property
    def precision(self) -> str:
        """The precision of the products in the Krylov space."""
        return "float32" if self.fast else "float64"

    def _last(self, candidates: Candidates) -> float:
        """The p-th non-null value."""
        return float(candidates.values[candidates.null(self.demands) + self.demands.p - 1])

    def _complaint(self, candidates: Candidates) -> tuple[str, Callable[[], None]]:
        """The first failed check of the candidates, or '', and the function that prepares the next try."""
        null = candidates.null(self.demands)
        keep = null + self.demands.p
        if keep > self.wanted:
            return f"{null} null vectors leave only {self.wanted - null} others", lambda: self._want(keep)
        last = self._last(candidates)
        worst = float(candidates.residuals[:keep].max())
        if not worst <= self.demands.tolerance * last:
            return f"largest residual {worst:.1e}, {worst / last:.1e} of the last eigenvalue", self._demand_more
        # Bound of the distance from a Ritz value to its eigenvalue, by the residual and the gap above (Kato, Temple).
        error = candidates.residuals[:keep] ** 2 / (candidates.values[-1] - candidates.values[:keep]).clip(1e-300)
        doubtful = (candidates.values[:keep] > self.demands.null_tolerance) & (
            candidates.values[:keep] - error <= self.demands.null_tolerance
        )
        if doubtful.any():
            return f"{int(doubtful.sum())} eigenvalues may be null or not", self._demand_more
        if last >= self.space.filter.cut:
            complaint = f"eigenvalue {last:.3g} is above the filter's cut {self.space.filter.cut:.3g}"
            return complaint, lambda: self._raise_cut(last)
        return "", lambda: None

    def _want(self, keep: int) -> None:
        """Search for `keep` vectors, in a new space if the present one is too small."""
        self.wanted = keep
        if 6 * keep > self.space.capacity:
            self.cut = self.spectrum.cut_above(3 * (keep + SPARE))
            self._start()

    def _demand_more(self) -> None:
        """Lower the target residual; if float32 cannot reach it, start again in float64."""
        self.target /= 10
        if self.fast and self.target < self.demands.tolerance / 50:
            self.fast, self.target = False, self.demands.tolerance
            self._start()

    def _raise_cut(self, last: float) -> None:
        # Ritz values bound eigenvalues from above, so every wanted eigenvalue is below this cut.
        self.cut = min(2 * last, HIGHEST_CUT * self.spectrum.damped)
        self._start()

    def _found(self, candidates: Candidates, outside: float) -> Found:
        keep = candidates.null(self.demands) + self.demands.p
        basis, degree = self.space.applied, self.space.filter.degree
        del self.space  # frees most of the memory before the result is copied
        return Found(
            candidates=Candidates(
                candidates.values[:keep],
                self.operator.restore(candidates.vectors[:, :keep]),
                candidates.residuals[:keep],
            ),
            outside=outside,
            largest=self.largest,
            products=self.operator.products,
            degree=degree,
            basis=basis,
            precision=self.precision,
        )


def _steps_ahead(looked: list[tuple[int, float]], share: float, width: int) -> int:
    """Steps until the next Ritz pairs: a share of the steps left, extrapolated from the logarithms of `promise`."""
    if len(looked) < 2:
        return 2
    (size_before, before), (size, now) = looked[-2:]
    fall = (before - now) / ((size - size_before) / width)
    return int(np.clip(share * now / fall, 1, 6)) if fall > 0 else 3


def _uncertified(operator: Operator, demands: Demands, complaint: str) -> SolverError:
    return SolverError(
        f"the {demands.p} bottom eigenvectors could not be certified",
        where=f"n = {operator.n}, {operator.products} products with M",
        expected=f"residuals <= {demands.tolerance:g} of the last eigenvalue and no eigenvalue left out",
        got=complaint,
        remedy="raise `neighbors`, `regularization` or the tolerance, or lower `components`",
    )
