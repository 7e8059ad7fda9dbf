/**
 * Gives every property the same seed, so that the same code has the same result. `PROPERTY_SEED=random npm test` searches
 * elsewhere, and a number repeats what failed there.
 */
import { configureGlobal, readConfigureGlobal } from "fast-check";

const { PROPERTY_SEED = "20261123" } = process.env;

if (PROPERTY_SEED !== "random") configureGlobal({ ...readConfigureGlobal(), seed: Number(PROPERTY_SEED) });
