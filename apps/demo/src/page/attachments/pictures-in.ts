/** The pictures of a clipboard. A copied table or slide also brings a picture of itself: then the text is what was meant. */
export function picturesIn({ files, types }: Pick<DataTransfer, 'files' | 'types'>): File[] {
  if (types.includes('text/plain')) return []
  return [...files].filter(({ type }) => type.startsWith('image/'))
}
