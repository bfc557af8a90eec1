import { z } from 'zod'

import { newId } from '../../new-id.ts'
import { StoredSession } from './stored-session.ts'

/** The artifacts of a chat, as `GET /chats/:chatId/artifacts` returns them. */
const Artifacts = z.object({
  artifacts: z.array(z.object({ name: z.string(), versions: z.array(z.number()).min(1) })),
})
export type Artifact = z.infer<typeof Artifacts>['artifacts'][number]

export type Loading =
  | { readonly state: 'loading' | 'missing' | 'failed' }
  | { readonly state: 'ready'; readonly session: StoredSession }

/** Reads the session of a chat. Never rejects. */
export async function readSession(chatId: string): Promise<Loading> {
  try {
    const response = await fetch(toPath(chatId, 'session'))
    if (response.status === 404) return { state: 'missing' }
    const session = StoredSession.safeParse(await response.json()).data
    return session ? { state: 'ready', session } : { state: 'failed' }
  } catch {
    // The server cannot be reached. The panel says so, and reads again with the next change.
    return { state: 'failed' }
  }
}

/** Sets a key of the state. Never rejects. Returns `busy` while a reply runs. */
export async function saveState(
  chatId: string,
  key: string,
  value: unknown,
): Promise<'saved' | 'busy' | 'failed'> {
  try {
    const { ok, status } = await sendJson('PATCH', toPath(chatId, 'session'), {
      state: { [key]: value },
    })
    if (ok) return 'saved'
    return status === 409 ? 'busy' : 'failed'
  } catch {
    return 'failed'
  }
}

/** Creates a chat from the text of a file. Never rejects. Returns the id of the chat, or why there is none. */
export async function importSession(
  text: string,
): Promise<{ readonly chatId: string } | 'not-a-session' | 'failed'> {
  const session = parseSession(text)
  if (!session) return 'not-a-session'
  const chatId = newId()
  try {
    const { ok, status } = await sendJson('POST', toPath(chatId, 'session'), session)
    if (ok) return { chatId }
    return status === 400 ? 'not-a-session' : 'failed'
  } catch {
    return 'failed'
  }
}

function parseSession(text: string): StoredSession | undefined {
  try {
    return StoredSession.safeParse(JSON.parse(text)).data
  } catch {
    // Not JSON.
    return undefined
  }
}

/** Returns the artifacts of a chat, or undefined if they cannot be read. Never rejects. */
export async function readArtifacts(chatId: string): Promise<readonly Artifact[] | undefined> {
  try {
    const response = await fetch(toPath(chatId, 'artifacts'))
    return Artifacts.safeParse(await response.json()).data?.artifacts
  } catch {
    return undefined
  }
}

/** The address of a version of an artifact. */
export function artifactUrl(chatId: string, name: string, version: number): string {
  return `${toPath(chatId, 'artifacts')}/${encodeURIComponent(name)}?version=${version}`
}

/** An artifact as the panel shows it. Files of other types can only be downloaded. */
export type ArtifactContent =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image' | 'file' }

const MAX_SHOWN_BYTES = 200_000

/** Reads an artifact to show it. Returns undefined if it cannot be read. Never rejects. */
export async function readArtifact(url: string): Promise<ArtifactContent | undefined> {
  try {
    const response = await fetch(url)
    if (!response.ok) return undefined
    const type = response.headers.get('content-type') ?? ''
    if (type.startsWith('image/')) return { type: 'image' }
    const bytes = await response.arrayBuffer()
    if (bytes.byteLength > MAX_SHOWN_BYTES) return { type: 'file' }
    const text = decode(bytes)
    return text === undefined ? { type: 'file' } : { type: 'text', text: indent(text) }
  } catch {
    return undefined
  }
}

/** Returns a text, or undefined if the bytes are none. The server names only types that a browser may display. */
function decode(bytes: ArrayBuffer): string | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    return text.includes('\0') ? undefined : text
  } catch {
    return undefined
  }
}

/** Writes JSON in lines. Other texts stay as they are. */
function indent(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2)
  } catch {
    return text
  }
}

function toPath(chatId: string, part: string): string {
  return `/chats/${encodeURIComponent(chatId)}/${part}`
}

function sendJson(method: string, path: string, body: unknown): Promise<Response> {
  const headers = { 'content-type': 'application/json' }
  return fetch(path, { method, headers, body: JSON.stringify(body) })
}
