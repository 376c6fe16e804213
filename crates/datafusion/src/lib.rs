//! SQL over every format Pilaster opens.
