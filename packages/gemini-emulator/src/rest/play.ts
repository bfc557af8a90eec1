import type { Part } from '../wire/content.ts'
import type { World } from '../world.ts'
import type { Step } from './plan.ts'
import type { Candidate, Renderer } from './render.ts'
import type { Reply } from './reply.ts'

export interface Stage {
  readonly world: World
  readonly reply: Reply
  readonly renderer: Renderer
  /** Aborts when the client goes away. */
  readonly signal: AbortSignal
}

/** Plays the steps: each message as it comes, or the one response that they add up to. */
export async function playSteps(steps: readonly Step[], stage: Stage): Promise<void> {
  const { reply, renderer, signal } = stage
  const outlet = reply.form === 'json' ? wholeOutlet(stage) : streamOutlet(stage)
  for (const step of steps) {
    signal.throwIfAborted()
    switch (step.do) {
      case 'send': {
        // Awaited only when the client lags: a promise for each chunk would cost more than the chunk.
        const lag = outlet.send(step)
        if (lag) await lag
        break
      }
      case 'raw':
        await outlet.message(JSON.stringify(step.message))
        break
      case 'block':
        await outlet.message(renderer.blocked(step.reason))
        break
      case 'pause':
      case 'wait':
        await reply.flush()
        await passTime(step, stage)
        break
      case 'fail':
        return reply.error(step.error)
      case 'drop':
        return reply.cut()
    }
  }
  outlet.end()
}

interface Outlet {
  send(candidate: Candidate): Promise<void> | undefined
  message(json: string): Promise<void> | undefined
  end(): void
}

function streamOutlet({ reply, renderer }: Stage): Outlet {
  return {
    send: (candidate) => reply.chunk(renderer.candidate(candidate)),
    message: (json) => reply.chunk(json),
    end: () => reply.endStream(),
  }
}

function wholeOutlet({ reply, renderer }: Stage): Outlet {
  const parts: Part[] = []
  let last: Candidate = { parts, spent: { candidates: 0, thoughts: 0 } }
  let body = ''
  return {
    send(candidate) {
      parts.push(...candidate.parts)
      last = candidate
      return undefined
    },
    message(json) {
      body = json
      return undefined
    },
    end: () => reply.body(body || renderer.candidate({ ...last, parts: joinTexts(parts) })),
  }
}

function passTime(step: Extract<Step, { do: 'pause' | 'wait' }>, { world, signal }: Stage) {
  return step.do === 'pause' ? world.pause(step.ms, signal) : world.gates.wait(step.gate, signal)
}

/** A whole response has one part where a stream has many pieces. */
function joinTexts(parts: readonly Part[]): readonly Part[] {
  const joined: Part[] = []
  for (const part of parts) {
    const last = joined.at(-1)
    if (part.text === undefined || last?.text === undefined || last.thought !== part.thought) {
      joined.push(part)
    } else {
      joined.splice(-1, 1, { ...last, text: last.text + part.text })
    }
  }
  return joined
}
