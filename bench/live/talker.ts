import { type BaseTool, Gemini, LlmAgent, LogLevel, setLogLevel } from '@google/adk'
import { Modality } from '@google/genai'

setLogLevel(LogLevel.ERROR)

export const RUN_CONFIG = { responseModalities: [Modality.TEXT] }

/** ADK's own Gemini, pointed at the emulator of this run. */
class EmulatedGemini extends Gemini {
  protected override getLiveHttpOptions() {
    return { ...super.getLiveHttpOptions(), baseUrl: process.env['BENCH_EMULATOR'] ?? '' }
  }
}

export function createTalker(tools: BaseTool[] = []): LlmAgent {
  const model = new EmulatedGemini({
    model: 'gemini-2.5-flash-native-audio-preview-12-2025',
    apiKey: 'any',
  })
  return new LlmAgent({ name: 'assistant', model, tools })
}
