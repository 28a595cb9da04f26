// All that draws: one bundle, so that the chart library is loaded once.
import "./lag/index.js";
import "./query/chart.js";
import "./timeline/index.js";
