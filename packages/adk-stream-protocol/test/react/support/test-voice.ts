import type { StageView, StageVoice } from '../../../src/react/components/voice-stage.tsx'

/** A voice whose microphone the test gives: it begins when it is allowed to. */
export class TestVoice implements StageVoice {
  readonly did: string[] = []
  readonly #listeners = new Set<() => void>()
  readonly #levels = new Set<Parameters<StageVoice['onLevel']>[0]>()
  state: StageView = { state: 'off', mode: 'hands-free' }
  allow: () => void = () => undefined

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  onLevel(listener: Parameters<StageVoice['onLevel']>[0]): () => void {
    this.#levels.add(listener)
    return () => this.#levels.delete(listener)
  }

  start(): Promise<void> {
    this.did.push('start')
    this.become({ ...this.state, state: 'asking' })
    return new Promise((resolve) => {
      this.allow = () => {
        this.become({ ...this.state, state: 'listening' })
        resolve()
      }
    })
  }

  stop(): void {
    this.did.push('stop')
    this.become({ ...this.state, state: 'off' })
  }

  setMuted(muted: boolean): void {
    this.did.push(muted ? 'mute' : 'unmute')
    this.become({ ...this.state, muted })
  }

  interrupt(): void {
    this.did.push('interrupt')
  }

  press(): void {
    this.did.push('press')
  }

  release(): void {
    this.did.push('release')
  }

  setMode(mode: StageView['mode']): void {
    this.become({ ...this.state, mode })
  }

  become(state: StageView): void {
    this.state = state
    for (const listener of this.#listeners) listener()
  }

  sound(input: number): void {
    for (const listener of this.#levels) listener({ input, output: 0 })
  }
}
