// The default theme, where a tool for accessibility found it wanting.
import theme from "vitepress/theme";
import "./style.css";

export default theme;
