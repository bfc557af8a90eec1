interface HeartbeatOptions {
  /** Whether anything needs the server. */
  readonly isWaiting: () => boolean
  readonly ping: () => void
  readonly onDead: () => void
}

/** The silence after which the server is pinged, and the time that it has to answer, in ms. */
const [QUIET_MS, ANSWER_MS] = [15_000, 10_000]

/** Detects a half-open connection: it accepts everything that is sent, and nothing arrives. */
export class SocketHeartbeat {
  readonly #options: HeartbeatOptions
  #timer: ReturnType<typeof setTimeout> | undefined
  #receivedAt = 0
  #pingedAt: number | undefined

  constructor(options: HeartbeatOptions) {
    this.#options = options
  }

  start(): void {
    this.stop()
    this.onReceived()
    this.#checkIn(QUIET_MS)
    for (const [target, event] of networkEvents()) target.addEventListener(event, this.check)
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#pingedAt = undefined
    for (const [target, event] of networkEvents()) target.removeEventListener(event, this.check)
  }

  onReceived(): void {
    this.#receivedAt = Date.now()
  }

  /** Pings now: the machine may have slept, or its network may have changed. */
  readonly check = (): void => {
    if (this.#pingedAt !== undefined || !this.#options.isWaiting()) return
    this.#pingedAt = Date.now()
    this.#options.ping()
    this.#checkIn(ANSWER_MS)
  }

  #checkIn(ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#onTimer(), ms)
  }

  #onTimer(): void {
    if (this.#pingedAt !== undefined && this.#receivedAt < this.#pingedAt)
      return this.#options.onDead()
    this.#pingedAt = undefined
    const silence = Date.now() - this.#receivedAt
    this.#checkIn(silence < QUIET_MS ? QUIET_MS - silence : QUIET_MS)
    if (silence >= QUIET_MS) this.check()
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
