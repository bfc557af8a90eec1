import { Gemini } from '@google/adk'

/** ADK's own Gemini, connected to an emulator. ADK 2.0.0 has no option for the endpoint. */
export class EmulatedGemini extends Gemini {
  readonly #baseUrl: string

  constructor(baseUrl: string, model = 'gemini-2.5-flash', apiKey = 'a key') {
    super({ model, apiKey })
    this.#baseUrl = baseUrl
  }

  protected override getHttpOptions() {
    return { ...super.getHttpOptions(), baseUrl: this.#baseUrl }
  }

  protected override getLiveHttpOptions() {
    return { ...super.getLiveHttpOptions(), baseUrl: this.#baseUrl }
  }
}
