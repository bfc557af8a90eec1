import { useTexts } from '../i18n/language.tsx'

interface FileViewProps {
  readonly url: string
  readonly mediaType: string
  readonly filename: string | undefined
}

/** An image as itself, any other file as a link to save it. */
export function FileView({ url, mediaType, filename }: FileViewProps) {
  const texts = useTexts()
  if (mediaType.startsWith('image/')) {
    return <img className="picture" src={url} alt={filename ?? texts.image} />
  }
  const name = filename ?? `${texts.file} (${mediaType})`
  return (
    <a className="attachment" href={url} download={filename ?? true}>
      {name}
    </a>
  )
}
