/** The longest time that a page draws nothing because the last drawing took long. */
const MAX_REST_MS = 250
/** A hidden page gets no animation frames. */
const HIDDEN_MS = 500

const IGNORE = (): void => undefined

/** Calls that are passed on at most once per animation frame. */
export interface PacedRender {
  readonly request: () => void
  readonly cancel: () => void
}

/**
 * Passes on calls of `render` at most every `minMs`, in an animation frame. After a drawing, the page has at least as much time for
 * input as the drawing took. Otherwise, chunks that arrive faster than a page can draw them would block it.
 */
export function paceRenders(render: () => void, minMs: number): PacedRender {
  let state: 'idle' | 'scheduled' | 'drawing' = 'idle'
  let isRequested = false
  let restUntil = 0
  let cancelScheduled: () => void = IGNORE

  const draw = (): void => {
    cancelScheduled()
    state = 'drawing'
    isRequested = false
    const startedAt = performance.now()
    render()
    // React renders after this function, and the browser paints after that. The timer runs after both.
    const timer = setTimeout(() => {
      const tookMs = performance.now() - startedAt
      restUntil = performance.now() + Math.min(Math.max(minMs - tookMs, tookMs), MAX_REST_MS)
      state = 'idle'
      if (isRequested) schedule()
    }, 0)
    cancelScheduled = () => clearTimeout(timer)
  }
  const schedule = (): void => {
    state = 'scheduled'
    const restMs = restUntil - performance.now()
    if (restMs <= 0) return void (cancelScheduled = onNextFrame(draw))
    const timer = setTimeout(() => {
      cancelScheduled = onNextFrame(draw)
    }, restMs)
    cancelScheduled = () => clearTimeout(timer)
  }
  return {
    request: () => {
      isRequested = true
      if (state === 'idle') schedule()
    },
    cancel: () => {
      cancelScheduled()
      isRequested = false
      state = 'idle'
    },
  }
}

/** Calls the function in the next animation frame, or some time later if there is none. Returns a function that cancels the call. */
function onNextFrame(call: () => void): () => void {
  const timer = setTimeout(call, hasFrames() ? HIDDEN_MS : 0)
  const frame = hasFrames() ? requestAnimationFrame(call) : undefined
  return () => {
    clearTimeout(timer)
    if (frame !== undefined) cancelAnimationFrame(frame)
  }
}

function hasFrames(): boolean {
  return typeof requestAnimationFrame === 'function' && document.visibilityState === 'visible'
}
