/** A webhook's target as requests give it. */
import { z } from "zod";
import { isHttpUrl } from "../http-url.ts";

/** An http or https URL, or null for none (WHK-25, UPD-15). */
export const targetUrl = z
  .string()
  .refine(isHttpUrl, "must be an http or https URL")
  .meta({ format: "uri" })
  .nullable()
  .describe("An http or https URL; null clears it. Unspecified: which schemes are allowed");
