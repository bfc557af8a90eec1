import { type GenerateContentResponse, GoogleGenAI } from '@google/genai'

import type { Emulator } from '../src/index.ts'

export const MODEL = 'gemini-2.5-flash'

/** The real client, pointed at the emulator. */
export function connect(emulator: Emulator, apiKey = 'test-key'): GoogleGenAI {
  return new GoogleGenAI({ apiKey, httpOptions: { baseUrl: emulator.baseUrl } })
}

export async function ask(emulator: Emulator, contents: string, model = MODEL) {
  return connect(emulator).models.generateContent({ model, contents })
}

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

/** For what the real client cannot send. */
export async function post(emulator: Emulator, method: string, body: string | object) {
  const response = await fetch(`${emulator.baseUrl}/v1beta/models/${MODEL}:${method}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-goog-api-key': 'test-key' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

/** The sentence in Google's error body. */
export async function rejection(emulator: Emulator, body: string | object): Promise<string> {
  const { status, text } = await post(emulator, 'generateContent', body)
  const { error } = JSON.parse(text) as { error: { code: number; message: string; status: string } }
  if (status !== 400 || error.code !== 400 || error.status !== 'INVALID_ARGUMENT') {
    throw new Error(`expected INVALID_ARGUMENT, got ${status} ${text}`)
  }
  return error.message
}

export function user(text: string) {
  return { role: 'user', parts: [{ text }] }
}

export function calls(...names: readonly string[]) {
  return { role: 'model', parts: names.map((name) => ({ functionCall: { name, args: {} } })) }
}

export function results(...names: readonly string[]) {
  return {
    role: 'user',
    parts: names.map((name) => ({ functionResponse: { name, response: { ok: true } } })),
  }
}
