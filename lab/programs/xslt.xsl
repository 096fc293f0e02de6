<!-- Makes a page of a book of xslt.awk: numbers, references, words by kind and in order. -->
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
<xsl:output method="html" indent="yes"/>
<xsl:key name="chapter" match="chapter" use="@id"/>
<xsl:key name="kind" match="para" use="concat(../@level, @kind)"/>
<xsl:template match="book">
  <html><body>
    <xsl:for-each select="chapter">
      <xsl:sort select="@level" data-type="number"/>
      <xsl:sort select="translate(title, '0123456789', '9876543210')"/>
      <xsl:apply-templates select="."/>
    </xsl:for-each>
  </body></html>
</xsl:template>
<xsl:template match="chapter">
  <h1 class="{count(key('kind', concat(@level, 'k3')))}"><xsl:value-of select="title"/></h1>
  <xsl:apply-templates select="para"/>
</xsl:template>
<xsl:template match="para">
  <p><xsl:apply-templates/></p>
  <xsl:call-template name="backwards">
    <xsl:with-param name="text" select="normalize-space(.)"/>
  </xsl:call-template>
</xsl:template>
<xsl:template match="em"><b><xsl:apply-templates/></b></xsl:template>
<xsl:template match="ref"><a href="#{@to}"><xsl:value-of select="key('chapter', @to)/title"/></a></xsl:template>
<xsl:template name="backwards">
  <xsl:param name="text"/>
  <xsl:if test="contains($text, ' ')">
    <xsl:call-template name="backwards">
      <xsl:with-param name="text" select="substring-after($text, ' ')"/>
    </xsl:call-template>
    <i><xsl:value-of select="substring-before($text, ' ')"/></i>
  </xsl:if>
</xsl:template>
</xsl:stylesheet>
