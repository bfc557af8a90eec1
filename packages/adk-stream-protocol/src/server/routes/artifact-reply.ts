import type { Part } from '@google/genai'

import { ProtocolError } from '../../protocol/errors.ts'
import type { FileReply } from '../http/exchange.ts'

/** Types that a browser shows without running anything of theirs. All others are only saved. */
const SHOWN = /^(?:image\/(?:png|jpeg|gif|webp)|audio\/[\w.+-]+|video\/[\w.+-]+|text\/plain)$/

/**
 * An artifact as a reply. Its type was chosen by an agent or a tool: what could run as a page of this origin, such as HTML or SVG,
 * is sent as bytes to be saved.
 */
export function toArtifactReply(name: string, part: Part | undefined): FileReply {
  const { type, bytes } = readContent(part)
  const isShown = SHOWN.test(type)
  const shownType = type === 'text/plain' ? 'text/plain; charset=utf-8' : type
  return {
    type: 'file',
    status: 200,
    bytes,
    headers: {
      'content-type': isShown ? shownType : 'application/octet-stream',
      'content-disposition': `${isShown ? 'inline' : 'attachment'}; filename*=UTF-8''${encodeName(name)}`,
      'content-security-policy': "default-src 'none'; sandbox",
    },
  }
}

function readContent(part: Part | undefined): { type: string; bytes: Uint8Array } {
  if (part?.inlineData?.data !== undefined) {
    const type = (part.inlineData.mimeType ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''
    return { type, bytes: Buffer.from(part.inlineData.data, 'base64') }
  }
  if (part?.text !== undefined) return { type: 'text/plain', bytes: Buffer.from(part.text) }
  // Nothing, or only the address of a file that is kept elsewhere.
  throw new ProtocolError('unknown-artifact')
}

function encodeName(name: string): string {
  // RFC 5987 leaves fewer characters as they are than a URL does.
  return encodeURIComponent(name.toWellFormed().replace(/^user:/, '')).replace(
    /['()*]/g,
    (mark) => `%${mark.codePointAt(0)?.toString(16).toUpperCase()}`,
  )
}
