// Bundles with the configuration of the guide; packages that are not installed are warnings, and no errors.
"use strict";
const webpack = require("webpack");

webpack(require("./webpack.config.cjs"), (error, stats) => {
  if (error ?? stats.hasErrors()) throw error ?? new Error(stats.toString({ all: false, errors: true }));
  console.log("ok webpack bundles it");
});
