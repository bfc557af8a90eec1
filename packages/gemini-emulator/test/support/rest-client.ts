import { type GenerateContentResponse, GoogleGenAI } from '@google/genai'

import type { Emulator } from '../../src/index.ts'

export const MODEL = 'gemini-2.5-flash'

/** Returns the Gen AI SDK, connected to the emulator. */
export function connect(emulator: Emulator, apiKey = 'test-key'): GoogleGenAI {
  return new GoogleGenAI({ apiKey, httpOptions: { baseUrl: emulator.baseUrl } })
}

/** Sends a prompt and returns the whole response. */
export async function ask(emulator: Emulator, contents: string, model = MODEL) {
  return connect(emulator).models.generateContent({ model, contents })
}

/** Sends a prompt and returns all chunks of the response. */
export async function stream(emulator: Emulator, contents: string, model = MODEL) {
  const chunks = await connect(emulator).models.generateContentStream({ model, contents })
  return collect(chunks)
}

export async function collect(
  chunks: AsyncIterable<GenerateContentResponse>,
): Promise<GenerateContentResponse[]> {
  const all: GenerateContentResponse[] = []
  for await (const chunk of chunks) all.push(chunk)
  return all
}

export function textOf(chunks: readonly GenerateContentResponse[]): string {
  return chunks.map(({ candidates }) => candidates?.[0]?.content?.parts?.[0]?.text ?? '').join('')
}

export function partsOf(chunks: readonly GenerateContentResponse[]) {
  return chunks.flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? [])
}

/** Sends a request that the SDK would not send. */
export async function post(emulator: Emulator, method: string, body: string | object) {
  const response = await fetch(`${emulator.baseUrl}/v1beta/models/${MODEL}:${method}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-goog-api-key': 'test-key' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

/** Sends an invalid request and returns the message of the error. Throws if it is not an `INVALID_ARGUMENT`. */
export async function rejection(emulator: Emulator, body: string | object): Promise<string> {
  const { status, text } = await post(emulator, 'generateContent', body)
  const { error } = JSON.parse(text) as { error: { code: number; message: string; status: string } }
  if (status !== 400 || error.code !== 400 || error.status !== 'INVALID_ARGUMENT') {
    throw new Error(`expected INVALID_ARGUMENT, got ${status} ${text}`)
  }
  return error.message
}

/** A message of the user. */
export function user(text: string) {
  return { role: 'user', parts: [{ text }] }
}

/** A turn of the model that calls these functions. */
export function calls(...names: readonly string[]) {
  return { role: 'model', parts: names.map((name) => ({ functionCall: { name, args: {} } })) }
}

/** The turn that responds to calls of these functions. */
export function results(...names: readonly string[]) {
  return {
    role: 'user',
    parts: names.map((name) => ({ functionResponse: { name, response: { ok: true } } })),
  }
}
