import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core'

import { launchChromium } from './launch-chromium.ts'

/** A context that tests use one after the other. */
interface Used {
  readonly key: string
  readonly context: BrowserContext
  /** An empty page that keeps the renderer process and its compiled scripts alive between tests. */
  readonly keeper: Page
  readonly origins: Set<string>
  faults: string[]
}

let launched: Promise<Browser> | undefined
const idle: Used[] = []

/** The maximum number of contexts that are kept for later tests. */
const MAX_IDLE = 3

/** Returns the browser that all tests of this process share. It exits with the process. */
function sharedBrowser(): Promise<Browser> {
  // The pages of a context share one renderer process: a second tab does not compile the page's scripts again.
  // Optimized code costs more to compile than it saves: no page lives longer than a test.
  launched ??= launchChromium(['--renderer-process-limit=1', '--js-flags=--no-opt,--no-maglev'])
  return launched
}

/**
 * Returns a context with these options. It may be one of an earlier test without its cookies, storage, pages and settings; only the
 * page's scripts stay in its cache.
 */
export async function takeContext(options: BrowserContextOptions): Promise<Used> {
  const key = JSON.stringify(options)
  const at = idle.findIndex((each) => each.key === key)
  if (at >= 0) return idle.splice(at, 1)[0] ?? takeContext(options)
  return openContext(await sharedBrowser(), options)
}

/** Opens a context that reports exceptions in its pages, and what the security policy had to stop. */
export async function openContext(browser: Browser, options: BrowserContextOptions): Promise<Used> {
  const context = await browser.newContext(options)
  context.setDefaultTimeout(PATIENCE_MS)
  const used: Used = {
    key: JSON.stringify(options),
    context,
    keeper: await context.newPage(),
    origins: new Set(),
    faults: [],
  }
  context.on('weberror', (error) => used.faults.push(error.error().message))
  await context.exposeFunction('reportFault', (fault: string) => used.faults.push(fault))
  await context.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) => {
      const { reportFault } = window as unknown as { reportFault: (fault: string) => void }
      reportFault(`${violatedDirective}: ${blockedURI}`)
    })
  })
  return used
}

/** Gives a context back, as empty as it was; resolves with what went wrong in its pages. */
export async function giveBack(used: Used): Promise<string[]> {
  const { context, keeper, origins } = used
  const pages = context.pages().filter((page) => page !== keeper)
  await Promise.all(pages.map((page) => page.close()))
  const { faults } = used
  used.faults = []
  await context.setOffline(false)
  await context.clearCookies()
  const session = await context.newCDPSession(keeper)
  for (const origin of origins) {
    await session.send('Storage.clearDataForOrigin', { origin, storageTypes: 'all' })
  }
  await session.detach()
  origins.clear()
  idle.push(used)
  while (idle.length > MAX_IDLE) await idle.shift()?.context.close()
  return faults
}

/** How long a test waits for a page that does not move. A busy machine may take seconds for a click. */
export const PATIENCE_MS = 120_000
