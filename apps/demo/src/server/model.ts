import { Gemini } from '@google/adk'
import { startEmulator } from 'gemini-emulator'

import type { Settings } from './settings.ts'

export interface DemoModel extends AsyncDisposable {
  readonly llm: Gemini
  /** For the start-up lines: who answers. */
  readonly label: string
}

/** Gemini when there is a key, else the emulator in this process. */
export async function openModel(settings: Settings): Promise<DemoModel> {
  const { model, geminiKey, geminiBaseUrl } = settings
  if (geminiKey !== undefined) {
    const llm = geminiBaseUrl
      ? new GeminiAt({ model, apiKey: geminiKey, baseUrl: geminiBaseUrl })
      : new Gemini({ model, apiKey: geminiKey })
    const place = geminiBaseUrl ? ` at ${geminiBaseUrl}` : ''
    return { llm, label: `${model}${place}`, [Symbol.asyncDispose]: () => Promise.resolve() }
  }
  const emulator = await startEmulator({ paceMs: 25 })
  return {
    llm: new GeminiAt({ model, apiKey: 'emulator', baseUrl: emulator.baseUrl }),
    label: 'the built-in Gemini emulator; set GOOGLE_API_KEY to talk to Gemini',
    [Symbol.asyncDispose]: () => emulator.close(),
  }
}

interface GeminiAtParams {
  readonly model: string
  readonly apiKey: string
  readonly baseUrl: string
}

/** ADK 2.0.0 has no option for the endpoint; its two hooks for HTTP options are the supported way in. */
class GeminiAt extends Gemini {
  readonly #baseUrl: string

  constructor({ baseUrl, ...params }: GeminiAtParams) {
    super(params)
    this.#baseUrl = baseUrl
  }

  protected override getHttpOptions() {
    return { ...super.getHttpOptions(), baseUrl: this.#baseUrl }
  }

  protected override getLiveHttpOptions() {
    return { ...super.getLiveHttpOptions(), baseUrl: this.#baseUrl }
  }
}
