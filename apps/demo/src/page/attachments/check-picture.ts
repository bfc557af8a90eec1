/** What the server takes; base64 makes a picture a third larger on its way, and the whole message has a limit too. */
export const PICTURE_TYPES = ['image/png', 'image/jpeg', 'image/webp', 'image/gif'] as const
const MEBI = 1_048_576
const MAX_PICTURE_BYTES = 5 * MEBI
const MAX_TOTAL_BYTES = 5.5 * MEBI
const MAX_PICTURES = 8

/** Why a picture cannot go with the message. */
export type PictureProblem =
  | { readonly kind: 'type'; readonly name: string }
  | { readonly kind: 'size'; readonly name: string; readonly maxMegabytes: number }
  | { readonly kind: 'total'; readonly name: string }
  | { readonly kind: 'count'; readonly max: number }
  | { readonly kind: 'unreadable'; readonly name: string }

interface Sized {
  readonly size: number
}

/** Checks one more picture beside those that are there. */
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
