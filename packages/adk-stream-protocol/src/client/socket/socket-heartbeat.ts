interface HeartbeatOptions {
  /** Whether anything needs the server. */
  readonly isWaiting: () => boolean
  readonly ping: () => void
  readonly onDead: () => void
}

/** The silence after which the server is pinged, and the time that it has to answer, in ms. */
const [QUIET_MS, ANSWER_MS] = [15_000, 10_000]

/** Detects a half-open connection: it accepts everything that is sent, and nothing arrives. */
export interface SocketHeartbeat {
  start(): void
  stop(): void
  onReceived(): void
}

export function createHeartbeat({ isWaiting, ping, onDead }: HeartbeatOptions): SocketHeartbeat {
  let timer: ReturnType<typeof setTimeout> | undefined
  let receivedAt = 0
  let pingedAt: number | undefined
  const onReceived = (): void => {
    receivedAt = Date.now()
  }
  const checkIn = (ms: number): void => {
    clearTimeout(timer)
    timer = setTimeout(onTimer, ms)
  }
  /** Pings now: the machine may have slept, or its network may have changed. */
  const check = (): void => {
    if (pingedAt !== undefined || !isWaiting()) return
    pingedAt = Date.now()
    ping()
    checkIn(ANSWER_MS)
  }
  const onTimer = (): void => {
    if (pingedAt !== undefined && receivedAt < pingedAt) return onDead()
    pingedAt = undefined
    const silence = Date.now() - receivedAt
    checkIn(silence < QUIET_MS ? QUIET_MS - silence : QUIET_MS)
    if (silence >= QUIET_MS) check()
  }
  const stop = (): void => {
    clearTimeout(timer)
    pingedAt = undefined
    for (const [target, event] of networkEvents()) target.removeEventListener(event, check)
  }
  return {
    start: () => {
      stop()
      onReceived()
      checkIn(QUIET_MS)
      for (const [target, event] of networkEvents()) target.addEventListener(event, check)
    },
    stop,
    onReceived,
  }
}

/** The events of a page after which the connection may be dead. There are none outside a page. */
function networkEvents(): [target: EventTarget, event: string][] {
  const { window, document } = globalThis as { window?: EventTarget; document?: EventTarget }
  return [
    ...(window ? [[window, 'online'] satisfies [EventTarget, string]] : []),
    ...(document ? [[document, 'visibilitychange'] satisfies [EventTarget, string]] : []),
  ]
}
