import type { FileUIPart } from 'ai'
import { useRef, useState } from 'react'
import { newId } from '../new-id.ts'

/** A picture of the draft. */
export interface Picture {
  readonly id: string
  readonly name: string
  readonly type: string
  readonly size: number
  /** The whole picture, as a `data:` URL. */
  readonly url: string
}

/** The pictures of the draft. */
export function usePictures() {
  const [pictures, setPictures] = useState<readonly Picture[]>([])
  const [problems, setProblems] = useState<readonly PictureProblem[]>([])
  // Pictures are read one after the other, because the limits apply to all of them together.
  const latest = useRef<readonly Picture[]>([])
  const reading = useRef<Promise<void>>(Promise.resolve())
  const update = (next: readonly Picture[]) => {
    latest.current = next
    setPictures(next)
  }
  const addOne = async (file: File) => {
    const picture = await readPicture(file, latest.current)
    if ('kind' in picture) setProblems((known) => [...known, picture])
    else update([...latest.current, picture])
  }
  return {
    held: pictures,
    /** Why other pictures were rejected. */
    problems,
    add: (files: readonly File[]) => {
      if (files.length > 0) setProblems([])
      for (const file of files) reading.current = reading.current.then(() => addOne(file))
    },
    remove: (id: string) => {
      setProblems([])
      update(latest.current.filter((picture) => picture.id !== id))
    },
    /** Adds pictures that were taken before. */
    restore: (files: readonly FileUIPart[]) => {
      if (files.length > 0) update([...latest.current, ...files.map(toPicture)])
    },
    /** Returns the pictures and clears them. */
    take: (): FileUIPart[] => {
      const files = latest.current.map(toPart)
      setProblems([])
      update([])
      return files
    },
  }
}

function toPart({ name, type, url }: Picture): FileUIPart {
  return { type: 'file', mediaType: type, filename: name, url }
}

function toPicture({ filename = '', mediaType, url }: FileUIPart): Picture {
  // Four characters of a `data:` URL are three bytes.
  const size = Math.floor((url.length - url.indexOf(',') - 1) * 0.75)
  return { id: newId(), name: filename, type: mediaType, size, url }
}

async function readPicture(
  file: File,
  others: readonly Picture[],
): Promise<Picture | PictureProblem> {
  const { name, type, size } = file
  const problem = checkPicture(file, others)
  if (problem) return problem
  try {
    return { id: newId(), name, type, size, url: await readDataUrl(file) }
  } catch {
    // The file was moved, or cannot be read.
    return { kind: 'unreadable', name }
  }
}

function readDataUrl(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.addEventListener('load', () => resolve(String(reader.result)))
    reader.addEventListener('error', () => reject(reader.error))
    reader.readAsDataURL(file)
  })
}

/** What the server accepts. Base64 adds a third to the size of a picture, and the message has a limit too. */
export const PICTURE_TYPES = ['image/png', 'image/jpeg', 'image/webp', 'image/gif'] as const
const MEBI = 1_048_576
const MAX_PICTURE_BYTES = 5 * MEBI
const MAX_TOTAL_BYTES = 5.5 * MEBI
const MAX_PICTURES = 8

/** Why a picture is rejected. */
export type PictureProblem =
  | { readonly kind: 'type'; readonly name: string }
  | { readonly kind: 'size'; readonly name: string; readonly maxMegabytes: number }
  | { readonly kind: 'total'; readonly name: string }
  | { readonly kind: 'count'; readonly max: number }
  | { readonly kind: 'unreadable'; readonly name: string }

interface Sized {
  readonly size: number
}

/** Checks whether a picture can be added to the others. Returns undefined if it can. */
export function checkPicture(
  { name, type, size }: Pick<File, 'name' | 'type' | 'size'>,
  others: readonly Sized[],
): PictureProblem | undefined {
  if (!PICTURE_TYPES.some((accepted) => accepted === type)) return { kind: 'type', name }
  if (size > MAX_PICTURE_BYTES) {
    return { kind: 'size', name, maxMegabytes: MAX_PICTURE_BYTES / MEBI }
  }
  if (others.length >= MAX_PICTURES) return { kind: 'count', max: MAX_PICTURES }
  const total = others.reduce((sum, other) => sum + other.size, size)
  return total > MAX_TOTAL_BYTES ? { kind: 'total', name } : undefined
}

/** Returns the pictures of a clipboard. A copied table or slide contains text and a picture of itself; then only the text counts. */
export function picturesIn({ files, types }: Pick<DataTransfer, 'files' | 'types'>): File[] {
  if (types.includes('text/plain')) return []
  return [...files].filter(({ type }) => type.startsWith('image/'))
}
