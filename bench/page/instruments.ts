import type { Page } from 'playwright-core'

/** Figures of the browser during a reply. Times are in ms. */
export interface Reading {
  readonly longestTask: number
  /** The sum of the time above 50 ms of all longer tasks. */
  readonly blocked: number
  /** The time from each key press to the frame that shows it. */
  readonly keys: readonly number[]
  /** The time from the start of the reply to its end, as the page shows it. */
  readonly whole: number
  /** Earlier messages that were rendered again. */
  readonly rerendered: number
  /** The longest time between two animation frames. */
  readonly longestFrame: number
  /** How often the page updated the conversation. */
  readonly updates: number
}

export interface Start {
  readonly firstPaint: number
  /** The time until the input can be used. */
  readonly inputReady: number
  /** The transferred bytes of the files that were loaded before the first paint. */
  readonly before: number
}

interface Instruments {
  readonly tasks: number[]
  readonly keys: number[]
  inputReady: number
  longestFrame: number
  updates: number
  startedAt: number
  endedAt: number
  props: (object | undefined)[]
}

interface Instrumented {
  readonly bench: Instruments
}

/** Adds the instruments to every document of the page, before its own scripts. */
export async function instrument(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const bench: Instruments = {
      tasks: [],
      keys: [],
      inputReady: 0,
      longestFrame: 0,
      updates: 0,
      startedAt: 0,
      endedAt: 0,
      props: [],
    }
    Object.assign(window, { bench })
    new PerformanceObserver((list) => {
      bench.tasks.push(...list.getEntries().map(({ duration }) => duration))
    }).observe({ type: 'longtask' })
    // `timeStamp` is when the browser received the event. A busy page dispatches it later.
    addEventListener(
      'keydown',
      ({ timeStamp }) => {
        const { port1, port2 } = new MessageChannel()
        port1.addEventListener('message', () => bench.keys.push(performance.now() - timeStamp))
        port1.start()
        // A message that is posted in a frame callback arrives after that frame.
        requestAnimationFrame(() => port2.postMessage(undefined))
      },
      { capture: true },
    )
    const seen = new MutationObserver(() => {
      if (!document.querySelector('textarea')) return
      bench.inputReady = performance.now()
      seen.disconnect()
    })
    seen.observe(document, { childList: true, subtree: true })
  })
}

/** Returns the figures of the page load. */
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
    return { firstPaint, inputReady: bench.inputReady, before }
  })
}

/** Starts to measure a reply. */
export function startMeasuring(page: Page): Promise<void> {
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
    if (!log) throw new Error('The page has no conversation.')
    new MutationObserver(() => (bench.updates += 1)).observe(log, options)
    const watch = (): void => {
      // The page has a button that stops the reply. The peer says that it is busy.
      const isRunning = document.querySelector('.adk-stop, [aria-busy=true]') !== null
      if (isRunning) bench.startedAt ||= performance.now()
      else if (bench.startedAt > 0) bench.endedAt ||= performance.now()
    }
    const everything = { childList: true, subtree: true, attributeFilter: ['aria-busy'] }
    new MutationObserver(watch).observe(document.body, everything)
  })
}

export function hasReplyEnded(page: Page): Promise<boolean> {
  return page.evaluate(() => (window as unknown as Instrumented).bench.endedAt > 0)
}

export function readReplyFigures(page: Page): Promise<Reading> {
  return page.evaluate(() => {
    const { bench } = window as unknown as Instrumented
    const { tasks, keys, updates, props, longestFrame } = bench
    const shown = [...document.querySelectorAll('[role=log] .adk-message, .message')]
    const rerendered = props.filter((before, index) => {
      const element = shown[index]
      // React 19 creates a new object of props for an element whenever its component renders.
      return !element || !Object.values(element).includes(before)
    })
    return {
      longestTask: Math.max(0, ...tasks),
      blocked: tasks.reduce((sum, duration) => sum + duration - 50, 0),
      keys: [...keys],
      whole: bench.endedAt - bench.startedAt,
      rerendered: rerendered.length,
      longestFrame,
      updates,
    }
  })
}
