// A headless Chromium driven over a pipe with the DevTools protocol; no dependency beyond Node.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

// --no-zygote: without a sandbox the zygote processes are not used, and starting them takes time.
const FLAGS = ["--headless", "--no-sandbox", "--no-zygote", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
  "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-pipe"];

/** The first Chromium-like command that runs, or null. */
export function findBrowser() {
  const names = [process.env.CHROMIUM, "chromium", "chromium-browser", "google-chrome"].filter(Boolean);
  return names.find((name) => spawnSync(name, ["--version"], { stdio: "ignore" }).status === 0) ?? null;
}

export class Browser {
  static async start(command) {
    const browser = new Browser();
    browser.profile = mkdtempSync(join(tmpdir(), "report-browser-"));
    browser.process = spawn(command, [...FLAGS, "--user-data-dir=" + browser.profile, "about:blank"],
      { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"], detached: true });
    browser.waiting = new Map();
    browser.events = [];
    browser.next = 1;
    browser.ended = new Promise((resolve) => browser.process.once("exit", resolve));
    browser.ended.then(() => {
      for (const { reject } of browser.waiting.values()) reject(new Error("the browser ended"));
    });
    let buffer = "";
    const input = browser.process.stdio[4];
    input.setEncoding("utf8");
    input.on("data", (chunk) => {
      const parts = (buffer + chunk).split("\0");
      buffer = parts.pop();
      for (const part of parts) browser.receive(JSON.parse(part));
    });
    browser.process.stdio[3].on("error", () => {});
    const { targetInfos } = await browser.send("Target.getTargets");
    const target = targetInfos.find((info) => info.type === "page").targetId;
    browser.session = (await browser.send("Target.attachToTarget", { targetId: target, flatten: true })).sessionId;
    for (const domain of ["Page", "Runtime", "Log", "Network"]) await browser.send(domain + ".enable");
    return browser;
  }

  receive(message) {
    if (message.id === undefined) {
      this.events.push(message);
      return;
    }
    const { resolve, reject } = this.waiting.get(message.id);
    this.waiting.delete(message.id);
    if (message.error) reject(new Error(message.error.message));
    else resolve(message.result);
  }

  send(method, params = {}) {
    const id = this.next++;
    const answer = new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
    this.process.stdio[3].write(JSON.stringify({ id, method, params, sessionId: this.session }) + "\0");
    return answer;
  }

  /** The value of a JavaScript expression in the page; promises are awaited. */
  async evaluate(expression) {
    const answer = await this.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (answer.exceptionDetails) throw new Error(expression + ": " + JSON.stringify(answer.exceptionDetails));
    return answer.result.value;
  }

  /** Waits until the expression is true; throws after `seconds`. */
  async until(expression, seconds = 60) {
    const end = Date.now() + seconds * 1000;
    while (!(await this.evaluate(expression))) {
      if (Date.now() > end) throw new Error("waited " + seconds + " s for " + expression);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  async open(url) {
    await this.send("Page.navigate", { url });
    await this.until("document.readyState === 'complete'");
  }

  async size(width, height = 900) {
    await this.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false });
  }

  async scheme(name) {
    await this.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: name }] });
  }

  /** Everything the page complained about, and every address it asked for that is not in the file itself. */
  complaints() {
    const out = [];
    for (const { method, params } of this.events) {
      if (method === "Runtime.exceptionThrown") out.push("exception: " + JSON.stringify(params.exceptionDetails));
      if (method === "Runtime.consoleAPICalled" && ["error", "warning", "assert"].includes(params.type)) {
        out.push("console: " + JSON.stringify(params.args.map((arg) => arg.value ?? arg.description)));
      }
      if (method === "Log.entryAdded" && ["error", "warning"].includes(params.entry.level)) out.push("log: " + params.entry.text);
      if (method === "Network.requestWillBeSent" && !/^(file|data|about|blob):/.test(params.request.url)) {
        out.push("network: " + params.request.url);
      }
    }
    return out;
  }

  async close() {
    await Promise.race([this.send("Browser.close").catch(() => {}), this.ended]);
    await Promise.race([this.ended, new Promise((resolve) => setTimeout(resolve, 3000))]);
    if (this.process.exitCode === null) this.process.kill("SIGKILL");
    rmSync(this.profile, { recursive: true, force: true, maxRetries: 5 });
  }
}
