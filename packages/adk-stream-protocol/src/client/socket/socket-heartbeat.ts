interface Parts {
  /** Whether anybody waits for the server. */
  readonly isWaiting: () => boolean
  readonly ping: () => void
  readonly onDead: () => void
}

/** How long the server may be silent before it is asked for a sign, and how long it may take to give one, in ms. */
const [QUIET_MS, ANSWER_MS] = [15_000, 10_000]

/** Notices a connection that is half open: it takes all that is sent, and nothing comes any more. */
export class SocketHeartbeat {
  readonly #parts: Parts
  #timer: ReturnType<typeof setTimeout> | undefined
  #heardAt = 0
  #askedAt: number | undefined

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** A connection is there. */
  begin(): void {
    this.end()
    this.heard()
    this.#look(QUIET_MS)
    for (const [target, event] of signs()) target.addEventListener(event, this.ask)
  }

  end(): void {
    clearTimeout(this.#timer)
    this.#askedAt = undefined
    for (const [target, event] of signs()) target.removeEventListener(event, this.ask)
  }

  heard(): void {
    this.#heardAt = Date.now()
  }

  /** Asks for a sign now: the machine was asleep, or its network is another. */
  readonly ask = (): void => {
    if (this.#askedAt !== undefined || !this.#parts.isWaiting()) return
    this.#askedAt = Date.now()
    this.#parts.ping()
    this.#look(ANSWER_MS)
  }

  #look(ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#check(), ms)
  }

  #check(): void {
    const isAsked = this.#askedAt !== undefined
    if (isAsked && this.#heardAt < (this.#askedAt ?? 0)) return this.#parts.onDead()
    this.#askedAt = undefined
    const silence = Date.now() - this.#heardAt
    this.#look(silence < QUIET_MS ? QUIET_MS - silence : QUIET_MS)
    if (silence >= QUIET_MS) this.ask()
  }
}

/** What tells that the connection may be gone, where there is a page. */
function signs(): [target: EventTarget, event: string][] {
  const { window, document } = globalThis as { window?: EventTarget; document?: EventTarget }
  return [
    ...(window ? [[window, 'online'] satisfies [EventTarget, string]] : []),
    ...(document ? [[document, 'visibilitychange'] satisfies [EventTarget, string]] : []),
  ]
}
