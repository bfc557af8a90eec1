import type { EmulatorCore } from '../emulator-core.ts'
import type { Part } from '../wire/content.ts'
import type { Step } from './plan-response.ts'
import type { Candidate, Renderer } from './render.ts'
import type { ResponseWriter } from './response-writer.ts'

export interface PlayContext {
  readonly core: EmulatorCore
  readonly writer: ResponseWriter
  readonly renderer: Renderer
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal
}

/** Carries out the steps: sends each message of a stream, or collects one complete response. */
export async function playResponse(steps: readonly Step[], context: PlayContext): Promise<void> {
  const { writer, renderer, signal } = context
  const output = writer.form === 'json' ? createBody(context) : createStream(context)
  for (const step of steps) {
    signal.throwIfAborted()
    switch (step.do) {
      case 'send': {
        // Awaits only if the client is slow: a promise for each chunk costs more than the chunk.
        const drained = output.send(step)
        if (drained) await drained
        break
      }
      case 'raw':
        await output.message(JSON.stringify(step.message))
        break
      case 'block':
        await output.message(renderer.blocked(step.reason, step.usage))
        break
      case 'pause':
      case 'wait':
        await writer.flush()
        await passTime(step, context)
        break
      case 'fail':
        return writer.error(step.error)
      case 'drop':
        return writer.drop()
    }
  }
  output.end()
}

interface Output {
  send(candidate: Candidate): Promise<void> | undefined
  message(json: string): Promise<void> | undefined
  end(): void
}

function createStream({ writer, renderer }: PlayContext): Output {
  return {
    send: (candidate) => writer.chunk(renderer.candidate(candidate)),
    message: (json) => writer.chunk(json),
    end: () => writer.endStream(),
  }
}

function createBody({ writer, renderer }: PlayContext): Output {
  const parts: Part[] = []
  let last: Candidate = { parts, tokens: { candidates: 0, thoughts: 0 } }
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
    end: () => writer.body(body || renderer.candidate({ ...last, parts: joinTexts(parts) })),
  }
}

function passTime(step: Extract<Step, { do: 'pause' | 'wait' }>, { core, signal }: PlayContext) {
  return step.do === 'pause' ? core.pause(step.ms, signal) : core.gates.wait(step.gate, signal)
}

/** Joins the pieces of a text to one part, as in a complete response. */
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
