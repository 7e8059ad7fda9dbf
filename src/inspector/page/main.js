/** The page's start. */
import { html, render } from "./vendor/htm-preact.js";

const root = document.querySelector("main");
if (root !== null) render(html`<p>oncehook inspector</p>`, root);
