import type { Page } from 'playwright-core'

/** What the browser told while an answer came. Times are ms. */
export interface Reading {
  readonly longestTask: number
  /** What tasks of more than 50 ms had beyond that, together. */
  readonly blocked: number
  /** From a key to the frame that shows it, of each key. */
  readonly keys: readonly number[]
  /** From the beginning of the answer to its end, as the page shows it. */
  readonly whole: number
  /** Earlier messages that were rendered again. */
  readonly rerendered: number
  /** The longest time between two animation frames. */
  readonly longestFrame: number
  /** How often the page changed what it shows of the answer. */
  readonly updates: number
}

export interface Start {
  readonly firstPaint: number
  /** Until one can write. */
  readonly writable: number
  /** Files that were there before the first paint, in bytes on the wire. */
  readonly before: number
}

interface Instruments {
  readonly tasks: number[]
  readonly keys: number[]
  writable: number
  longestFrame: number
  updates: number
  begunAt: number
  endedAt: number
  props: (object | undefined)[]
}

interface Instrumented {
  readonly bench: Instruments
}

/** Puts the instruments into every document of the page, before its own scripts. */
export async function instrument(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const bench: Instruments = {
      tasks: [],
      keys: [],
      writable: 0,
      longestFrame: 0,
      updates: 0,
      begunAt: 0,
      endedAt: 0,
      props: [],
    }
    Object.assign(window, { bench })
    new PerformanceObserver((list) => {
      bench.tasks.push(...list.getEntries().map(({ duration }) => duration))
    }).observe({ type: 'longtask' })
    // The time of an event is when the browser got it: a busy page makes it wait before anybody hears of it.
    addEventListener(
      'keydown',
      ({ timeStamp }) => {
        const { port1, port2 } = new MessageChannel()
        port1.addEventListener('message', () => bench.keys.push(performance.now() - timeStamp))
        port1.start()
        // A message that is posted within a frame arrives when that frame is done.
        requestAnimationFrame(() => port2.postMessage(undefined))
      },
      { capture: true },
    )
    const seen = new MutationObserver(() => {
      if (!document.querySelector('textarea')) return
      bench.writable = performance.now()
      seen.disconnect()
    })
    seen.observe(document, { childList: true, subtree: true })
  })
}

/** How the page came up, once it is quiet. */
export function readStart(page: Page): Promise<Start> {
  return page.evaluate(() => {
    const { bench } = window as unknown as Instrumented
    const firstPaint = performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0
    const files = performance
      .getEntriesByType('resource')
      .filter((entry) => entry instanceof PerformanceResourceTiming)
      .filter(({ responseEnd, initiatorType }) => {
        return responseEnd < firstPaint && initiatorType !== 'fetch'
      })
    const before = files.reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)
    return { firstPaint, writable: bench.writable, before }
  })
}

/** From here on, it is counted. */
export function begin(page: Page): Promise<void> {
  return page.evaluate(() => {
    const { bench } = window as unknown as Instrumented
    bench.tasks.length = 0
    bench.keys.length = 0
    bench.updates = 0
    bench.longestFrame = 0
    let before = performance.now()
    const onFrame = (now: number): void => {
      if (bench.endedAt > 0) return
      bench.longestFrame = Math.max(bench.longestFrame, now - before)
      before = now
      requestAnimationFrame(onFrame)
    }
    requestAnimationFrame((now) => {
      before = now
      requestAnimationFrame(onFrame)
    })
    const shown = document.querySelectorAll('[role=log] .adk-message, .message')
    bench.props = [...shown].map((element) => {
      const key = Object.keys(element).find((name) => name.startsWith('__reactProps$'))
      return Reflect.get(element, key ?? '') as object | undefined
    })
    const log = document.querySelector('[role=log]')
    const options = { childList: true, subtree: true, characterData: true }
    if (!log) throw new Error('There is no conversation.')
    new MutationObserver(() => (bench.updates += 1)).observe(log, options)
    const watch = (): void => {
      if (log.ariaBusy === 'true') bench.begunAt ||= performance.now()
      else if (bench.begunAt > 0) bench.endedAt ||= performance.now()
    }
    new MutationObserver(watch).observe(log, { attributes: true })
  })
}

export function isAnswered(page: Page): Promise<boolean> {
  return page.evaluate(() => (window as unknown as Instrumented).bench.endedAt > 0)
}

export function readAnswer(page: Page): Promise<Reading> {
  return page.evaluate(() => {
    const { bench } = window as unknown as Instrumented
    const { tasks, keys, updates, props, longestFrame } = bench
    const shown = [...document.querySelectorAll('[role=log] .adk-message, .message')]
    const rerendered = props.filter((before, index) => {
      const element = shown[index]
      // React 19 gives an element a new object of props whenever the component that made it renders.
      return !element || !Object.values(element).includes(before)
    })
    return {
      longestTask: Math.max(0, ...tasks),
      blocked: tasks.reduce((sum, duration) => sum + duration - 50, 0),
      keys: [...keys],
      whole: bench.endedAt - bench.begunAt,
      rerendered: rerendered.length,
      longestFrame,
      updates,
    }
  })
}
