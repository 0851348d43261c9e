"""Row lengths and documents that bin packing is tried on."""

from hypothesis import strategies as st


@st.composite
def cases(draw: st.DrawFn) -> tuple[int, list[int]]:
    """A row length and documents: short, of a few lengths, simple fractions of the row, longer than it."""
    size = draw(st.sampled_from([2, 3, 5, 8, 16, 31, 64, 600, 1100]))
    few = draw(st.lists(st.integers(1, size), min_size=1, max_size=4))
    parts = [max(1, size // n) for n in (1, 2, 3, 4, 5, 7)]
    length = draw(
        st.sampled_from(
            [
                st.integers(1, size),
                st.integers(1, max(1, size // 8)),
                st.integers(max(1, size // 4), size),
                st.sampled_from(few),
                st.sampled_from(parts),
                st.integers(1, 4 * size),
            ]
        )
    )
    return size, draw(st.lists(length, max_size=120))
