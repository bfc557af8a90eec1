import type { LlmRequest, LlmResponse } from '@google/adk'
import { BaseLlm, LlmAgent, setLogger } from '@google/adk'

import { produced, monotonicMs, readScript, speak } from './script.ts'

/** Streams partial responses and then the whole text, as Gemini does in ADK. */
class ScriptedModel extends BaseLlm {
  constructor() {
    super({ model: 'scripted' })
  }

  override async *generateContentAsync(
    request: LlmRequest,
    _stream?: boolean,
    signal: AbortSignal = new AbortController().signal,
  ): AsyncGenerator<LlmResponse, void> {
    const script = readScript(request.contents.at(-1)?.parts?.[0]?.text ?? '')
    let text = ''
    try {
      for await (const token of speak(script, signal)) {
        text += token
        yield { content: { role: 'model', parts: [{ text: token }] }, partial: true }
      }
      if (!signal.aborted) {
        yield { content: { role: 'model', parts: [{ text }] }, partial: false }
      }
    } finally {
      // Also runs if the consumer stops early.
      produced.ended += 1
      produced.lastEndMs = monotonicMs()
    }
  }

  override connect(): Promise<never> {
    return Promise.reject(new Error('The scripted model has no live mode.'))
  }
}

/** Returns the agent of the rows that run ADK. */
export function scriptedAgent(): LlmAgent {
  // ADK logs each model call, which would be measured, too.
  setLogger(null)
  return new LlmAgent({ name: 'assistant', model: new ScriptedModel() })
}
