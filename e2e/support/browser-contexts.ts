import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core'

import { launchChromium } from './launch-chromium.ts'

/** A browser context that several tests use one after the other. */
interface PooledContext {
  readonly key: string
  readonly context: BrowserContext
  /** An empty page that keeps the renderer process and its compiled scripts between tests. */
  readonly blankPage: Page
  readonly origins: Set<string>
  /** Exceptions and violations of the security policy in the pages. */
  errors: string[]
}

/** The browser contexts that a test has opened. */
export class TestContexts {
  readonly #pooled: PooledContext[] = []
  readonly #separate: { readonly browser: Browser; readonly pooled: PooledContext }[] = []

  /** Opens an empty page that may load `url`. With `flags`, it opens in a browser of its own. */
  async openPage(
    url: string,
    { flags, ...options }: BrowserContextOptions & { readonly flags?: readonly string[] } = {},
  ): Promise<Page> {
    // With reduced motion, popovers get their colours at once, and the page draws half as many frames.
    const contextOptions = { locale: 'en-US', reducedMotion: 'reduce' as const, ...options }
    const pooled = await (flags
      ? this.#openSeparate(flags, contextOptions)
      : this.#acquire(contextOptions))
    pooled.origins.add(new URL(url).origin)
    return pooled.context.newPage()
  }

  /** Closes the pages and resolves with their errors. */
  async close(): Promise<string[]> {
    const errors = await Promise.all(this.#pooled.splice(0).map(releaseContext))
    for (const { browser, pooled } of this.#separate.splice(0)) {
      errors.push(pooled.errors)
      await browser.close()
    }
    return errors.flat()
  }

  /** Closes the pages. Throws if one of them had an exception or violated the security policy. */
  async closeWithoutErrors(): Promise<void> {
    const errors = await this.close()
    if (errors.length > 0) throw new Error(`The page had errors: ${errors.join(', ')}`)
  }

  async #acquire(options: BrowserContextOptions): Promise<PooledContext> {
    const pooled = await acquireContext(options)
    this.#pooled.push(pooled)
    return pooled
  }

  async #openSeparate(
    flags: readonly string[],
    options: BrowserContextOptions,
  ): Promise<PooledContext> {
    const browser = await launchChromium(flags)
    const pooled = await openContext(browser, options)
    this.#separate.push({ browser, pooled })
    return pooled
  }
}

let launched: Promise<Browser> | undefined
const pool: PooledContext[] = []

/** The maximum number of contexts that are kept for later tests. */
const MAX_POOL_SIZE = 3

/** Returns the browser that all tests of this process share. It exits with the process. */
function sharedBrowser(): Promise<Browser> {
  // The pages of a context share one renderer process: a second tab does not compile the page's scripts again.
  // Optimized code costs more to compile than it saves: no page is open longer than a test.
  launched ??= launchChromium(['--renderer-process-limit=1', '--js-flags=--no-opt,--no-maglev'])
  return launched
}

/**
 * Returns a context with these options. It may be a context of an earlier test, without its cookies, storage, pages and settings. Only
 * the scripts of the page stay in its cache.
 */
async function acquireContext(options: BrowserContextOptions): Promise<PooledContext> {
  const key = JSON.stringify(options)
  const index = pool.findIndex((each) => each.key === key)
  if (index >= 0) return pool.splice(index, 1)[0] ?? acquireContext(options)
  return openContext(await sharedBrowser(), options)
}

/** Opens a context that collects exceptions and violations of the security policy in its pages. */
async function openContext(
  browser: Browser,
  options: BrowserContextOptions,
): Promise<PooledContext> {
  const context = await browser.newContext(options)
  context.setDefaultTimeout(PAGE_TIMEOUT_MS)
  const pooled: PooledContext = {
    key: JSON.stringify(options),
    context,
    blankPage: await context.newPage(),
    origins: new Set(),
    errors: [],
  }
  context.on('weberror', (error) => pooled.errors.push(error.error().message))
  await context.exposeFunction('reportPageError', (error: string) => pooled.errors.push(error))
  await context.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) => {
      const { reportPageError } = window as unknown as { reportPageError: (error: string) => void }
      reportPageError(`${violatedDirective}: ${blockedURI}`)
    })
  })
  return pooled
}

/** Returns a context to the pool without its pages, cookies and storage. Resolves with the errors of its pages. */
async function releaseContext(pooled: PooledContext): Promise<string[]> {
  const { context, blankPage, origins } = pooled
  const pages = context.pages().filter((page) => page !== blankPage)
  await Promise.all(pages.map((page) => page.close()))
  const { errors } = pooled
  pooled.errors = []
  await context.setOffline(false)
  await context.clearCookies()
  const session = await context.newCDPSession(blankPage)
  for (const origin of origins) {
    await session.send('Storage.clearDataForOrigin', { origin, storageTypes: 'all' })
  }
  await session.detach()
  origins.clear()
  pool.push(pooled)
  while (pool.length > MAX_POOL_SIZE) await pool.shift()?.context.close()
  return errors
}

/** How long a test waits for a page that does not change. A busy machine may take seconds for a click. */
export const PAGE_TIMEOUT_MS = 120_000
