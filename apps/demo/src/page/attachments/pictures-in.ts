/** Returns the pictures of a clipboard. A copied table or slide contains text and a picture of itself; then only the text counts. */
export function picturesIn({ files, types }: Pick<DataTransfer, 'files' | 'types'>): File[] {
  if (types.includes('text/plain')) return []
  return [...files].filter(({ type }) => type.startsWith('image/'))
}
