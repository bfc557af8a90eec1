import { Gemini } from '@google/adk'
import { firstOf, scriptResponder, startEmulator } from 'gemini-emulator'

import { demoModel } from '../model/demo-model.ts'
import { transcribeAsDialogue } from '../model/speech/dialogue.ts'
import { speakPieces } from '../model/speech/speak.ts'
import type { Settings } from './settings.ts'
import type { Language } from '../demo-info.ts'

export interface DemoModel extends AsyncDisposable {
  readonly llm: Gemini
  /** For live conversations. */
  readonly live: Gemini
  /** The endpoint, for clients other than ADK. */
  readonly endpoint: { readonly baseUrl: string; readonly apiKey: string; readonly model: string }
  /** Describes the model in the start-up output. */
  readonly label: string
}

/** Connects to Gemini if there is a key. Otherwise starts the emulator in this process. */
export async function openModel(
  settings: Settings,
  /** The language of the dialogue that replaces the user's speech. */
  language: () => Language = () => 'en',
): Promise<DemoModel> {
  const { model, liveModel, geminiKey, geminiBaseUrl } = settings
  if (geminiKey !== undefined) {
    const at = (name: string): Gemini =>
      geminiBaseUrl
        ? new GeminiAt({ model: name, apiKey: geminiKey, baseUrl: geminiBaseUrl })
        : new Gemini({ model: name, apiKey: geminiKey })
    const place = geminiBaseUrl ? ` at ${geminiBaseUrl}` : ''
    const label = `${model}, live ${liveModel}${place}`
    const baseUrl = geminiBaseUrl ?? 'https://generativelanguage.googleapis.com'
    const endpoint = { baseUrl, apiKey: geminiKey, model }
    return {
      llm: at(model),
      live: at(liveModel),
      endpoint,
      label,
      [Symbol.asyncDispose]: async () => {},
    }
  }
  const emulator = settings.emulatorUrl
    ? { baseUrl: settings.emulatorUrl, close: async () => {} }
    : await startDemoEmulator({ language })
  const endpoint = { baseUrl: emulator.baseUrl, apiKey: 'emulator', model }
  const at = (name: string): Gemini => new GeminiAt({ ...endpoint, model: name })
  return {
    endpoint,
    llm: at(model),
    live: at(liveModel),
    label: 'the built-in Gemini emulator; set GOOGLE_API_KEY to talk to Gemini',
    [Symbol.asyncDispose]: () => emulator.close(),
  }
}

/** Starts the emulator with the demo's model and speech. */
export function startDemoEmulator({ language = () => 'en' }: { language?: () => Language } = {}) {
  return startEmulator({
    paceMs: 25,
    respond: firstOf(scriptResponder, demoModel),
    transcribe: transcribeAsDialogue(language),
    synthesize: speakPieces,
    // Allows the user to interrupt the model while its audio plays.
    live: { playback: 'real-time' },
  })
}

interface GeminiAtParams {
  readonly model: string
  readonly apiKey: string
  readonly baseUrl: string
}

/** ADK 2.0.0 has no option for the endpoint. Overriding the HTTP options is the supported way. */
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
