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
